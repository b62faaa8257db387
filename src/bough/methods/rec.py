"""REC (arXiv 2509.24203)."""

from dataclasses import replace

from bough import credit
from bough.objective import Rec
from bough.train import Run, World


def rec(world: World) -> Run:
    """REC (arXiv 2509.24203): group-relative REINFORCE that masks tokens whose ratio moved too far.

    Assumes several paths of each task, which an older policy may have sampled: four optimizer steps a batch. One side
    of the clip as a mask and no weight is the paper's REC-OneSide-NoIS, without a divergence. Released code
    (Trinity-RFT) fails at a group of one, which gets 0 here.
    """
    return world.run(
        credit=credit.rec(),
        objective=Rec(keep="one_side"),
        regularizers=(),
        optimizer=replace(world.optimizer, minibatches=4),
    )
