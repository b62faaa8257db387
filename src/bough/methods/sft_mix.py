"""GRPO with imitation (Trinity-RFT, arXiv 2505.17826)."""

from bough.objective import PpoClip, SftMix, add
from bough.train import Demonstrations, Run, World


def sft_mix(world: World, *, mu: float = 0.1, demonstrations: int = 96, per_step: int = 8) -> Run:
    """GRPO with imitation (Trinity-RFT, arXiv 2505.17826): demonstrations beside samples, one coefficient.

    Assumes an oracle. The weight 0.1 is the release's, which scales each part by the expected number of its rows in a
    micro-batch; here both are means over the optimizer step. The world's regularizers apply to sampled tokens only.
    """
    return world.run(
        objective=SftMix(objective=add(PpoClip(), world.regularizers), mu=mu),
        regularizers=(),
        demonstrations=Demonstrations(count=demonstrations, per_step=per_step),
    )
