"""The filter of groups without a non-zero advantage."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from bough.curate.filter import NO_SIGNAL, FilterResult
from bough.piece import AtLeast, piece
from bough.tree import Credited, groups


@piece
class NonZeroAdvantage:
    """Drops the groups without a non-zero advantage, under "no_signal" (as in DAPO, arXiv 2503.14476).

    DAPO uses the accuracy of a group and samples until the batch is full. Here the advantages themselves decide, and
    the batch becomes smaller.

    The mean of the loss is over all sampled paths, as in the papers' formulas: of eight groups, one tied, the loss is
    the sum of seven groups over eight. So the filter saves the work of groups without a gradient and changes none. A
    loss with a term that needs no advantage (`Kl`, `Entropy`, a critic) keeps these groups. With
    `max_sampling_rounds` above 1 other groups replace them, and the mean is over these, as in DAPO.

    Attributes:
        tolerance: Advantages up to this absolute value count as zero, >= 0. Above 0 a tied group that a term of the
            loss keeps has its advantages set to zero.
        in_mean: Whether dropped groups count in the mean of the loss. If false, the loss is the mean over kept groups,
            with every term.
    """

    tolerance: Annotated[float, AtLeast(0, "0 or more")] = 0.0
    in_mean: bool = True

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        """Keep the groups with a non-zero advantage."""
        by_task = groups(credited)
        kept = {group[0].tree.task.id for group in by_task if any(self._has_signal(tree) for tree in group)}
        trees = tuple(tree for tree in credited if tree.tree.task.id in kept)
        if not self.in_mean:
            return FilterResult(trees=trees, dropped={NO_SIGNAL: len(by_task) - len(kept)})
        tied = tuple(
            replace(tree, path_advantage=np.zeros_like(tree.path_advantage))
            for tree in credited
            if tree.tree.task.id not in kept
        )
        return FilterResult(trees=trees, dropped={NO_SIGNAL: 0}, tied=tied)

    def _has_signal(self, credited: Credited) -> bool:
        largest = np.maximum(credited.positive, -credited.negative).max(initial=0.0)
        return bool(largest > self.tolerance)
