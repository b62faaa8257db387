"""LOOP (arXiv 2502.01600)."""

from dataclasses import replace

from bough import credit
from bough.curate import SmallAdvantage
from bough.explore import Chains
from bough.objective import Normalizer, loop_clip
from bough.train import Run, World


def loop(world: World, *, paths: int = 6, epochs: int = 2) -> Run:
    """LOOP (arXiv 2502.01600): leave-one-out over episodes, a tight clip, several passes, no critic, no reference.

    Assumes several paths of each task, and returns of at least 0, where the released code cuts them off. 6 paths a
    task, the mean within a path and then over paths, the clip of 0.1 and no path with an advantage below 0.01 are the
    paper's. The lower bound is 1 / 1.1 as in the released code (apple/ml-loop), not 0.9.
    """
    return world.run(
        explorer=Chains(n=paths),
        credit=credit.loop(),
        regularizers=(),
        filters=(SmallAdvantage(threshold=0.01),),
        objective=loop_clip(),
        normalizer=Normalizer(by="paths"),
        optimizer=replace(world.optimizer, epochs=epochs),
    )
