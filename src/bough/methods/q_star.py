"""Q* search (arXiv 2102.04518)."""

from dataclasses import replace

from bough.credit import Filtered, QLearning
from bough.methods.alpha_math import alpha_math
from bough.searches.q_star import q_star as q_star_search
from bough.train import Run, World


def q_star(
    world: World,
    *,
    expansions: int = 40,
    width: int = 4,
    discount: float = 0.9,
    rounds: int = 3,
    batch_tasks: int = 256,
) -> Run:
    """Q* search (arXiv 2102.04518): a value head learns the turns after each action by Q-learning, from its own search.

    Assumes an environment that can step a state twice. A step of the run is a round: a search of each task by the
    current Q, at most `expansions` actions long, then six passes over its actions; the policy imitates the paths that
    succeeded. The paper learns from states that lead back from the goal, and has no policy; here the policy proposes
    `width` actions in a state, and `bough search RUN 'q_star()'` rates all admissible ones.
    """
    run = alpha_math(world, rounds=rounds, batch_tasks=batch_tasks)
    return run.replace(
        explorer=replace(q_star_search(width=width, discount=discount, rounds=expansions), stop_value=None),
        credit=Filtered(max_paths=2, value_targets=QLearning(discount=discount)),
    )
