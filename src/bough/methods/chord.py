"""CHORD (arXiv 2508.11408)."""

from bough.objective import Chord, PpoClip, add
from bough.train import Demonstrations, Run, World


def chord(world: World, *, demonstrations: int = 96, per_step: int = 8) -> Run:
    """CHORD (arXiv 2508.11408): demonstrations beside samples in every batch, weighted by the policy's uncertainty.

    Assumes an oracle. Imitation weighs 0.1 throughout, as in the released code; a schedule is `objective.peak=0.9
    objective.valley=0.05 objective.decay=0.5`. The released code scales each part by the expected number of its rows in
    a micro-batch; here both are means over the optimizer step. The world's regularizers apply to sampled tokens only.
    """
    return world.run(
        objective=Chord(objective=add(PpoClip(), world.regularizers)),
        regularizers=(),
        demonstrations=Demonstrations(count=demonstrations, per_step=per_step),
    )
