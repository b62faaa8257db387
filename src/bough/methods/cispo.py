"""CISPO (arXiv 2506.13585)."""

from bough.objective import Cispo
from bough.train import Run, World


def cispo(world: World, *, high: float = 0.28) -> Run:
    """CISPO (MiniMax-M1, arXiv 2506.13585): the ratio is a bounded weight, so that no token loses its gradient.

    Assumes several paths of each task. There is no lower bound, as in the paper, which leaves the upper one open; 0.28
    is DAPO's. Released code (verl) bounds both sides: `objective.low=0.2`. The ratio is 1 in the first optimizer step
    of a batch: with one step a batch the gradient is that of `grpo`.

    Try: `bough train cispo --on sokoban optimizer.minibatches=4 optimizer.epochs=2`
    """
    return world.run(objective=Cispo(high=high))
