"""Self-consistency over the ends of a search."""

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

from bough.needs import FORKS, Need
from bough.rollout.rollout import Rollout
from bough.search.expand import Sample
from bough.search.frontier import Level
from bough.search.node import SearchNode
from bough.search.search import Search
from bough.search.tree import SearchTree
from bough.tree import Outcome


def full_tree() -> Search:
    """Two samples at every node, level by level."""
    return Search(select=Level(), expand=Sample(width=2), stop_value=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """Self-consistency (arXiv 2203.11171): the answer of most paths of a search; needs forks.

    Paths with the same answer vote for it. The votes of a path are the product of the copies of its actions: an action
    that was sampled twice is one node and counts as two paths. A truncated path has no answer. The value of an end is
    the share of the votes for its answer; the environment's success is not used. Ends of five paths with the answers a,
    b, a, c and none: .5 for a, .25 for b and c, 0 for the last.

    Attributes:
        search: Grows the tree. Its evaluation guides the growth, and its values of ends are replaced.
        by: A name in the info of the environment's last step whose value is the answer, such as "result" of `Sql`; an
            empty answer has no vote. Without such a name, the text of the last action.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    search: Search = field(default_factory=full_tree)
    by: str = ""

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        tree = SearchTree(rollout, await rollout.root(), success_value=None, failure_value=0.0)
        try:
            await self.search.go(tree)
        finally:
            self.count(tree)
            tree.store_results(answer_at_any_node=self.search.answer_at_any_node)

    def count(self, tree: SearchTree) -> None:
        """Set the value of every ended path to the share of the votes for its answer."""
        answers = {end: self._answer(tree, end) for end in tree.ends()}
        votes = Counter[str]()
        for end, answer in answers.items():
            votes[answer] += _copies(end) if answer else 0
        total = max(1, votes.total())
        for end, answer in answers.items():
            end.value = end.q = votes[answer] / total if answer else 0.0

    def _answer(self, tree: SearchTree, end: SearchNode) -> str:
        if end.at is not Outcome.TERMINATED:
            return ""
        return str(tree.env_info(end).get(self.by, end.action))


def _copies(end: SearchNode) -> int:
    """Number of sampled paths that an end stands for."""
    copies = 1
    for node in end.path():
        copies *= node.copies
    return copies
