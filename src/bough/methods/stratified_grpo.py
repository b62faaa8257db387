"""Stratified GRPO (arXiv 2510.06214)."""

from bough.credit import StratifiedGrpo
from bough.train import Run, World


def stratified_grpo(world: World, *, blend: float = 0.8) -> Run:
    """Stratified GRPO (arXiv 2510.06214): compares paths of a task that have the same number of turns.

    Assumes that paths of different structure are not comparable; the paper's strata are the numbers of search calls.
    Where strata are small, the blend with the whole task's comparison has most of the effect. The blend is a setting of
    Bough: the released code was not found.
    """
    return world.run(credit=StratifiedGrpo(blend=blend))
