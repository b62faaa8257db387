"""CISPO (arXiv 2506.13585)."""

from bough.objective import Cispo
from bough.train import Run, World


def cispo(world: World, *, high: float = 0.28) -> Run:
    """CISPO (MiniMax-M1, arXiv 2506.13585): the ratio is a bounded weight, so that no token loses its gradient.

    Assumes several paths of each task. There is no lower bound, as in the paper, which leaves the upper one open; 0.28
    is DAPO's. Released code (verl) bounds both sides: `objective.low=0.2`.
    """
    return world.run(objective=Cispo(high=high))
