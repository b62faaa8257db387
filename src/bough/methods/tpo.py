"""TPO (arXiv 2410.12854)."""

from bough.curate import NonZeroAdvantage
from bough.objective import Tpo
from bough.train import Run, World


def tpo(world: World) -> Run:
    """TPO (arXiv 2410.12854): ranks all paths of a task as one list.

    Assumes several paths of each task; a ranked list has more information than pairs if returns have over two values.
    Experimental: the weights of pairs are LambdaRank's. Steps that are alike on both sides of a pair have little
    weight, by the cosine of their hidden states; a step is a turn. The released loss descends in the wrong direction
    and favours the steps that are alike. Beta is 0.1.
    """
    return world.run(objective=Tpo(), regularizers=(), filters=(NonZeroAdvantage(),))
