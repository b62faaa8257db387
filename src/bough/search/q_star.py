"""Q*: best-first search over actions that are rated before they are executed."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.search.critic_rating import CriticRating
from bough.search.expand import Admissible, Sample
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


def q_star(weight: float = 1.0, width: int | None = None, discount: float = 0.9, rounds: int = 1000) -> Search:
    """Q* search (A* Search Without Expansions, arXiv 2102.04518): A* over actions by a learned Q; needs a critic.

    All admissible actions of a state are rated in one pass of the network, by minus the turns that are left after them.
    The open list holds actions, and only the one of least turns so far plus turns to go is executed: one environment
    step and one pass for a node, where A* has one of each for every child. Needs state keys.

    The method `q_star` trains the critic. In the paper the network has one output for each action of a fixed set;
    here the actions are texts after a shared state, and the pass computes the state once. `rate=Likely()` needs
    no critic.

    Args:
        weight: Weight of the turns so far, from 0 to 1.
        width: Number of sampled actions, in place of all admissible ones; None for the latter.
        discount: Discount of a turn in the critic's values.
        rounds: Maximum number of executed actions.

    Try: `bough search runs/q_star_sokoban 'q_star()'`
    """
    return Search(
        select=Best(by=AStarCost(weight=weight), deepest=True),
        expand=Admissible() if width is None else Sample(width=width),
        rate=CriticRating(discount=discount),
        prune=(DedupeStates(),),
        rounds=rounds,
    )
