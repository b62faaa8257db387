"""TOPR (arXiv 2503.14286)."""

from dataclasses import replace

from bough.credit import dr_grpo
from bough.objective import Topr
from bough.train import Run, World


def topr(world: World) -> Run:
    """TOPR (arXiv 2503.14286): off-policy REINFORCE with truncated weights for paths of negative advantage only.

    Assumes several paths of each task, which an older policy may have sampled: four optimizer steps a batch. The weight
    of a bad path is the product of its ratios, at most 1, as in the paper; released code (Trinity-RFT) has a ratio for
    each token (`Topr(ratio="token")`). The paper's rewards are 1 and -1 without a baseline; here the advantage is the
    return minus the task's mean.
    """
    return world.run(credit=dr_grpo(), objective=Topr(), optimizer=replace(world.optimizer, minibatches=4))
