"""ReST-MCTS* (arXiv 2406.03816)."""

from bough.credit import Filtered, RestMcts
from bough.methods.alpha_math import alpha_math
from bough.searches.mcts import mcts
from bough.train import Run, World


def rest_mcts(world: World, *, simulations: int = 50, rounds: int = 3, batch_tasks: int = 256) -> Run:
    """ReST-MCTS* (arXiv 2406.03816): imitates a search's good paths; a value head learns values from distances.

    Assumes an environment that can step a state twice. A step of the run is a round: a search by rollouts, then
    imitation of the shortest successful paths of each task, at most two. 50 simulations are those of the released
    script for training data, where success does not end a search. From its second round on the paper's search is guided
    by the value model: `explorer.evaluate=CriticValue`.
    """
    return alpha_math(world, rounds=rounds, batch_tasks=batch_tasks).replace(
        explorer=mcts(width=4, simulations=simulations, revisit=False),
        credit=Filtered(max_paths=2, value_targets=RestMcts(head="value")),
    )
