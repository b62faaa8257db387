"""The filter of paths with small advantages."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.curate.filter import FilterResult
from bough.piece import Above, piece
from bough.tree import Credited, Ints, exclude_leaves, groups, path_view


@piece
class SmallAdvantage:
    """LOOP's filter (arXiv 2502.01600): drops paths whose advantages are all below a threshold.

    Dropped paths are removed from the batch: their tokens do not count in the mean of the loss either. Groups without
    remaining paths are dropped under "small_advantage".

    Attributes:
        threshold: Smallest absolute advantage that counts, > 0 (0.01 in the paper).
    """

    threshold: Annotated[float, Above(0)] = 0.01

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        """Drop paths, and the groups that are then empty."""
        thinned = [self._thin(each) for each in credited]
        kept: list[Credited] = []
        dropped = 0
        for group in groups(thinned):
            left = [each for each in group if len(each.excluded_leaves) < len(path_view([each.rewarded]).leaf)]
            kept += left
            dropped += not left
        order = {id(each): place for place, each in enumerate(thinned)}
        return FilterResult(
            trees=tuple(sorted(kept, key=lambda each: order[id(each)])), dropped={"small_advantage": dropped}
        )

    def _thin(self, credited: Credited) -> Credited:
        view = path_view([credited.rewarded])
        largest = np.zeros(view.paths)
        np.maximum.at(largest, view.path[view.path_tokens.step], np.abs(credited.path_advantage))
        small: Ints = view.leaf[largest < self.threshold]
        return exclude_leaves(credited, small)
