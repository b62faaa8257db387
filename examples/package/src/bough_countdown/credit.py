"""Advantages over the median of a task's paths."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bough.tree import Credited, Rewarded, path_view, spread_turns


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianBaseline:
    """Return minus the median return of the task's paths, for every token of a path.

    Attributes:
        scale: Factor of the advantage.
    """

    scale: float = 1.0

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        advantage = np.zeros(view.paths)
        for task in np.unique(view.task):
            own = view.task == task
            advantage[own] = self.scale * (view.returns[own] - np.median(view.returns[own]))
        return spread_turns(view, advantage[view.path])
