"""Step-wise GRPO (Trinity-RFT, arXiv 2505.17826)."""

from bough.credit import StepwiseGrpo
from bough.train import Run, World


def stepwise_grpo(world: World) -> Run:
    """Step-wise GRPO (Trinity-RFT, arXiv 2505.17826): broadcasts the last turn's advantage to the turns before it.

    Assumes that the last turn is paid for the whole path; rewards of other turns do not count. In the released code,
    which follows rLLM, a path alone in its group keeps its reward; here it gets 0.
    """
    return world.run(credit=StepwiseGrpo())
