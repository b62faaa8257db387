"""AsymRE (arXiv 2506.20520)."""

from dataclasses import replace

from bough.credit import AsymRe
from bough.objective import Rec
from bough.train import Run, World


def asymre(world: World, *, shift: float = -0.1) -> Run:
    """AsymRE (arXiv 2506.20520): off-policy REINFORCE against a lowered baseline; no ratio, no clip, no divergence.

    Assumes several paths of each task, which an older policy may have sampled: four optimizer steps a batch. The shift
    is that of Trinity-RFT, in which a path alone in its group keeps its return; here it gets 0.
    """
    return world.run(
        credit=AsymRe(shift=shift),
        objective=Rec(keep="none"),
        regularizers=(),
        optimizer=replace(world.optimizer, minibatches=4),
    )
