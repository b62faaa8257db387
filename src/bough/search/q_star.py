"""Q*: best-first search over actions that are rated before they are executed."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.search.node import SearchNode
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
