"""rStar-Math (arXiv 2501.04519)."""

from dataclasses import replace

from bough import objective
from bough.methods.mcts_dpo import mcts_dpo
from bough.search import mcts
from bough.train import Run, World


def rstar(world: World, *, simulations: int = 48, rounds: int = 3, batch_tasks: int = 64) -> Run:
    """Pairs of rStar-Math (arXiv 2501.04519): a place's two best actions over its two worst, in a search.

    Assumes an environment that can step a state twice. In the paper such pairs train a process preference model, and
    the policy imitates the best paths; here they train the policy. Success is worth 1 and failure -1, in 48
    simulations, as in the paper; an ended path is not visited again. The reference is the policy at the start of a
    round.
    """
    return mcts_dpo(world, rounds=rounds, batch_tasks=batch_tasks).replace(
        explorer=replace(mcts(width=4, simulations=simulations, revisit=False), failure_value=-1.0),
        objective=objective.rstar(),
    )
