"""Repeated search: commit to the best path, and search again from its end."""

from dataclasses import field
from typing import Annotated, ClassVar, Literal

from bough.needs import FORKS, Need
from bough.piece import AtLeast, piece
from bough.rollout.rollout import Rollout
from bough.search.evaluate import CriticValue
from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.node import SearchNode
from bough.search.pieces import Score
from bough.search.score import NodeValue, QValue
from bough.search.search import Search
from bough.search.tree import SearchTree, best


def _best_first() -> Search:
    return Search(select=Best(by=NodeValue()), expand=Sample(width=4), evaluate=CriticValue())


@piece
class Commit:
    """Searches, commits to the best path, and searches on from its end (Tree Search for LM Agents, arXiv 2407.01476).

    Needs forks. One search has the `rounds` of its settings. Then the path to the best node is fixed, ended paths
    first, and all its siblings are pruned. With to="action" only the first action is fixed (MCTS-DPO, 2405.00451), the
    best child by a score. Estimates below are kept; the paper starts from an empty tree. The search ends when an ended
    path is fixed, nothing is open, a budget runs out, or after `moves`. After the budget, to="action" follows the best
    children that are known. The answer is on the fixed path.

    Try: `bough search runs/alpha_math_sokoban 'Commit()'`

    Attributes:
        search: The search that is repeated.
        to: What is fixed: the path to the best node, or one action.
        by: Scores children with to="action": `QValue` or `VisitCount`; ties go to the first found.
        moves: Maximum number of searches.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    search: Search = field(default_factory=_best_first)
    to: Literal["way", "action"] = "way"
    by: Score = QValue()
    moves: Annotated[int, AtLeast(1)] = 5

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        tree = SearchTree(
            rollout,
            await rollout.root(),
            success_value=self.search.success_value,
            failure_value=self.search.failure_value,
        )
        try:
            await self.go(tree)
        finally:
            tree.store_results(answer_at_any_node=self.search.answer_at_any_node)

    async def go(self, tree: SearchTree) -> None:
        """Search below the root of a tree, and move the root down after each search."""
        for _ in range(self.moves):
            if not tree.spent:
                await self.search.go(tree)
            there = self._next(tree)
            if there is None:
                break
            tree.commit_to(there)
            if there.closed or (tree.spent and self.to == "way"):
                break

    def _next(self, tree: SearchTree) -> SearchNode | None:
        """The node to commit to; None where the search found none."""
        children = [child for child in tree.root.children if child.visits]
        if self.to == "action":
            return max(children, key=lambda child: (self.by(child), -child.number), default=None)
        below: list[SearchNode] = []
        more = list(tree.root.children)
        while more:
            below += more
            more = [child for node in more for child in node.children]
        return best(node for node in below if node.ended) or best(below)
