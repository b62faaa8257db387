"""Credit by comparing a path with all that passed through each of the places it came by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bough.credit.branches import place_of, rise, value_after, value_before
from bough.credit.marks import written
from bough.credit.normalize import normalize
from bough.tree import Credited, Floats, Rewarded, Steps, spread_steps, steps, sum_at


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePo:
    """TreePO (arXiv 2508.17445): a path is compared at each place it came by with the paths that did, too.

    With d the turns of path p, and the group of d the n_d paths that act from the place where p took turn d:

        delta_d = R_p - mean of R over the group of d
        A_p     = mean over d of delta_d, or sum of n_d delta_d / sum of n_d        ("size")

    where groups of one are left out beyond the first turn, and with `drop_ties` groups whose returns are all equal;
    then A is whitened over the tokens of the batch that the policy wrote: (A - mean) / (std + epsilon), ddof 1. Two
    branches at the prompt and two below each, before whitening and, with equally long paths, after:

        returns                   1       0       0       0
        even                    0.625  -0.375  -0.125  -0.125      1.614  -0.968  -0.323  -0.323
        size                    0.667  -0.333  -0.167  -0.167
        even, drop_ties         0.625  -0.375  -0.25   -0.25

    The paper's segments are of equally many tokens, here they are turns: a stretch of turns without a fork repeats the
    same comparison, as it does there. Tasks whose paths all tie stay out of the whitening, mean and deviation, and get
    exactly 0; the paper's runs filter such tasks (DAPO).

    With `progress` a turn gets the rise it brought, not the whole path's comparison: by how much the paths that go on
    from it, and those that it was chosen among, differ in the mean of A (by size, and each path counted as a group of
    one besides), before whitening:

        first turns   0.143 -0.143       after the first   0.429  -0.429       after the second   0  0

    It is a mode of the released code, which takes every segment for equally long; an early stop within one puts it out
    of step.

    Attributes:
        weight: How groups are averaged; the released script has "even".
        drop_ties: Whether groups whose returns are all equal are left out, as they pull toward 0.
        progress: Whether a turn is worth the rise in A; by size.
        whiten: Whether the batch is whitened.
        epsilon: Added to the standard deviation, > 0.
    """

    weight: Literal["even", "size"] = "even"
    drop_ties: bool = False
    progress: bool = False
    whiten: bool = True
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ValueError(f"TreePo.epsilon: got {self.epsilon}; need a number above 0")

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = steps(rewarded)
        of_path = self._ancestors(view)
        advantage = (
            rise(value_after(view, of_path), value_before(view, of_path)) if self.progress else of_path[view.path]
        )
        return spread_steps(view, self._whitened(view, advantage) if self.whiten else advantage)

    def _ancestors(self, view: Steps) -> Floats:
        """[P], before whitening."""
        place = place_of(view)
        apart = normalize(view.returns[view.path], place, std="none")
        size = np.bincount(place)[place]
        kept = (size > 1) | (view.turn == 0)
        if self.drop_ties:
            kept &= np.bincount(place, np.abs(apart))[place] > 0
        weight = np.where(kept, size if self.weight == "size" or self.progress else 1.0, 0.0)
        total, weights = (sum_at(view.path, each, view.paths) for each in (weight * apart, weight))
        return total / (weights + 1.0 if self.progress else np.where(weights > 0, weights, 1.0))

    def _whitened(self, view: Steps, advantage: Floats) -> Floats:
        """[S]."""
        task = view.task[view.path]
        learns = np.bincount(task, np.abs(advantage), minlength=1)[task] > 0
        batch, out = np.zeros(int(learns.sum()), dtype=np.int64), np.zeros(len(advantage))
        out[learns] = normalize(
            advantage[learns], batch, mean="batch", std="batch", weight=written(view)[learns], epsilon=self.epsilon
        )
        return out
