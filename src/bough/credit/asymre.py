"""Advantages with a lowered baseline."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from bough.credit.normalize import normalize
from bough.piece import piece
from bough.tree import Credited, Floats, Ints, Rewarded, path_view, spread_turns


@piece
class AsymRe:
    """AsymRE (arXiv 2506.20520): a baseline a little below the task's mean; paths may come from an older policy.

        A_p = R_p - (mean of R + shift)

    Off-policy, a loss that lowers the probability of old samples does harm, and one that raises it does little. The
    paper shows a collapse as soon as the baseline exceeds the rollout policy's mean return. A negative shift is safe:
    average paths are imitated. The loss has no ratio.

        returns      1    0.5      0
        AsymRe()   0.6    0.1   -0.4

    So tied paths of a group get -shift each: they equal the mean, above the baseline. A group
    of one has no mean to compare with and gets 0; in Trinity-RFT it keeps its return (`as_released`).

    Attributes:
        shift: Added to the mean; -0.1 in Trinity-RFT.
        as_released: A group of one keeps its return.
    """

    # Ties get the shift, so tied paths are not zero.
    compares: ClassVar[Literal["nothing"]] = "nothing"

    shift: float = -0.1
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.advantages(view.returns, view.task)[view.path])

    def advantages(self, returns: Floats, task: Ints) -> Floats:
        """[n] float64: the advantages of n paths with the given returns and tasks."""
        alone = np.bincount(task)[task] == 1
        return np.where(alone, returns if self.as_released else 0.0, normalize(returns, task, std="none") - self.shift)
