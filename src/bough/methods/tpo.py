"""TPO (arXiv 2410.12854)."""

from bough.curate import NonZeroAdvantage
from bough.objective import Tpo
from bough.train import Run, World


def tpo(world: World) -> Run:
    """TPO (arXiv 2410.12854): ranks all paths of a task as one list.

    Assumes several paths of each task; a ranked list has more information than pairs if returns have over two values.
    Experimental: the weights are LambdaRank's, and the paper's weights of steps, which need hidden states, are left
    out. The released loss descends in the wrong direction. Beta is 0.1.
    """
    return world.run(objective=Tpo(), regularizers=(), filters=(NonZeroAdvantage(),))
