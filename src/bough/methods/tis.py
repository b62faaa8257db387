"""Truncated importance sampling (arXiv 1802.01561)."""

from bough.objective import PpoClip, Tis
from bough.train import Run, World


def tis(world: World, *, cap: float = 2.0) -> Run:
    """GRPO with truncated importance sampling (IMPALA, arXiv 1802.01561): weights the engine/learner gap, capped.

    Assumes nothing of the environment: it is for engines whose log-probabilities differ from the learner's, by
    precision, kernels or age. A cap of 2 is customary. With Bough's own engine the weights are nearly 1.
    """
    return world.run(objective=Tis(objective=PpoClip(), cap=cap))
