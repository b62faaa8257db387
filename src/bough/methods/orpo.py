"""ORPO (arXiv 2403.07691)."""

from bough.curate import NonZeroAdvantage
from bough.objective import Orpo, Pairs
from bough.train import Run, World


def orpo(world: World) -> Run:
    """ORPO (arXiv 2403.07691): imitates the better path of a pair and prefers it by odds; no reference.

    Assumes several paths of each task with different returns. The paper's pairs are fixed; here the policy samples new
    ones in each step. The weight 0.1 of the preference is the paper's.
    """
    return world.run(objective=Orpo(pairs=Pairs(choice="all")), regularizers=(), filters=(NonZeroAdvantage(),))
