"""Masked importance sampling (IcePop, arXiv 2510.18855)."""

from bough.objective import Mis, PpoClip
from bough.train import Run, World


def mis(world: World) -> Run:
    """GRPO with masked importance sampling (IcePop, arXiv 2510.18855): tokens with an engine/learner gap get no loss.

    Assumes nothing of the environment: it is for engines whose log-probabilities differ from the learner's, by
    precision, kernels or age. Ratios from 0.5 to 5 are kept, as in the paper. With Bough's own engine nothing is
    masked.
    """
    return world.run(objective=Mis(objective=PpoClip()))
