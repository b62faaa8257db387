"""Stratified GRPO (arXiv 2510.06214)."""

from bough.credit import StratifiedGrpo
from bough.train import Run, World


def stratified_grpo(world: World, *, mark: str | None = None, blend: float = 0.8) -> Run:
    """Stratified GRPO (arXiv 2510.06214): compares paths of a task that have the same number of turns.

    Assumes that paths of different structure are not comparable; the paper's strata are the numbers of search calls,
    `mark=call:search`. Where strata are small, the blend with the whole task's comparison has most of the effect. The
    blend is a setting of Bough: the released code was not found.

    Try: `bough train 'stratified_grpo(mark=call:search)' --on search`
    Try: `bough train stratified_grpo --on sokoban`

    Args:
        world: The world.
        mark: The turns that a stratum counts: "call" for all calls of tools, "call:search" for those of one tool; None
            for all turns.
        blend: Weight of the comparison within the stratum, in [0, 1].
    """
    return world.run(credit=StratifiedGrpo(mark=mark, blend=blend))
