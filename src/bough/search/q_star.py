"""Q*: best-first search over actions that are rated before they are executed."""

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
    """Rates actions by the policy: mean log-probability of their tokens, nats; one call per state.

    The source of an action does not matter. As a rating for `AStarCost` it treats an unlikely action as a long path; it
    is not an admissible heuristic.

    Attributes:
        scale: Number of turns per nat.
    """

    scale: float = 1.0

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children].

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
        """
        del node
        drafts = [child.draft for child in children if child.draft is not None]
        scores = await tree.rollout.score_each(drafts)
        return [self.scale * sum(logprobs) / max(1, len(logprobs)) for logprobs in scores]


def q_star(weight: float = 1.0) -> Search:
    """Q* (arXiv 2406.14283): executes the action with the best turns so far and Q; needs state keys.

    Experimental: written from the paper's abstract. All admissible actions of a state are rated at once, by minus the
    turns that are left after them. The open list holds actions, and only the one of highest -(turns so far) + Q is
    executed: one environment step for a node, where A* steps once for each of its children. The rating here is the
    policy's likelihood. Use `rate` for a learned one, and `expand=Sample()` where the environment lists no admissible
    actions.
    """
    return Search(
        select=Best(by=AStarCost(weight=weight), deepest=True),
        expand=Admissible(),
        rate=Likely(),
        prune=(DedupeStates(),),
    )
