"""The filter of groups without a non-zero advantage."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bough.checks import check_finite
from bough.curate.filter import FilterResult
from bough.tree import Credited, groups

NO_SIGNAL = "no_signal"
"""The reason of groups without a non-zero advantage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NonZeroAdvantage:
    """Drops the groups without a non-zero advantage, under "no_signal" (as in DAPO, arXiv 2503.14476).

    DAPO uses the accuracy of a group and samples until the batch is full. Here the advantages themselves decide, and
    the batch becomes smaller.

    Attributes:
        tolerance: Advantages up to this absolute value count as zero, >= 0.
    """

    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if not self.tolerance >= 0:
            raise ValueError(f"NonZeroAdvantage.tolerance: got {self.tolerance}; need 0 or more")
        check_finite(self)

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        """Keep the groups with a non-zero advantage."""
        by_task = groups(credited)
        kept = {group[0].tree.task.id for group in by_task if any(self._has_signal(tree) for tree in group)}
        trees = tuple(tree for tree in credited if tree.tree.task.id in kept)
        return FilterResult(trees=trees, dropped={NO_SIGNAL: len(by_task) - len(kept)})

    def _has_signal(self, credited: Credited) -> bool:
        largest = np.maximum(credited.positive, -credited.negative).max(initial=0.0)
        return bool(largest > self.tolerance)
