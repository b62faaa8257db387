"""Q* search: A* over actions by a learned Q."""

from bough.search.critic_rating import CriticRating
from bough.search.expand import Admissible, Sample
from bough.search.frontier import Best
from bough.search.prune import DedupeStates
from bough.search.score import AStarCost
from bough.search.search import Search


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
