"""INPO (arXiv 2407.00617)."""

from bough.curate import NonZeroAdvantage
from bough.objective import Inpo, Pairs
from bough.train import Run, World


def inpo(world: World) -> Run:
    """INPO (arXiv 2407.00617): Nash learning by a game of the policy against itself, on pairs of paths.

    Assumes several paths of each task. Experimental: the formula is a re-implementation's. Each batch is an iteration
    of the game. The loss holds the policy to the one before the batch and, less, to the one after the warm-up. The
    values of eta and tau are settings of Bough.
    """
    return world.run(objective=Inpo(pairs=Pairs(choice="all")), regularizers=(), filters=(NonZeroAdvantage(),))
