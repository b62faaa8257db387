"""Q*: best-first over actions that are rated before anybody carries them out."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.search.expand import Admissible
from bough.search.frontier import Best
from bough.search.node import SearchNode
from bough.search.prune import DedupeStates
from bough.search.score import AStarCost
from bough.search.search import Search
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Likely:
    """Rates actions by how likely the policy finds them: mean log-probability of their tokens; one call a state.

    Whoever wrote them: it is the policy's opinion of actions that it did not write, too. As a rating for `AStarCost` it
    takes an unlikely action for a long way; nothing says that it is never too long.

    Attributes:
        scale: How many turns a nat is worth.
    """

    scale: float = 1.0

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """A number for each child.

        Raises:
            BudgetExceeded: when the budget of calls can't pay for it.
        """
        del node
        drafts = [child.draft for child in children if child.draft is not None]
        scores = await tree.rollout.score_each(drafts)
        return [self.scale * sum(logprobs) / max(1, len(logprobs)) for logprobs in scores]


def q_star(weight: float = 1.0) -> Search:
    """Q* (arXiv 2406.14283): an action is carried out when its turns so far and its Q are best; needs state keys.

    Experimental: the paper's abstract was read, not its text. All admissible actions of a place are rated at once, by
    minus the turns that are left after them; the open list is of actions, and the one of highest -(turns so far) + Q is
    carried out, and only that: one step of the environment for a place, where A* takes one for each of its children.
    The rating here is the policy's likelihood; take `rate` for one that was learned, and `expand=Sample()` where the
    environment does not say what can be done.
    """
    return Search(
        select=Best(by=AStarCost(weight=weight), deepest=True),
        expand=Admissible(),
        rate=Likely(),
        prune=(DedupeStates(),),
    )
