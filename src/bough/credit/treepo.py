"""Credit by comparing a path with all that passed through each of the places it came by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bough.credit.branches import place_of
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
    exactly 0; the paper's runs filter such tasks (DAPO). The released code has more: values of single segments, and
    early stops that cut within one, which its own segments are then out of step with.

    Attributes:
        weight: How groups are averaged; the released script has "even".
        drop_ties: Whether groups whose returns are all equal are left out, as they pull toward 0.
        whiten: Whether the batch is whitened.
        epsilon: Added to the standard deviation, > 0.
    """

    weight: Literal["even", "size"] = "even"
    drop_ties: bool = False
    whiten: bool = True
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ValueError(f"TreePo.epsilon: got {self.epsilon}; need a number above 0")

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = steps(rewarded)
        advantage = self._ancestors(view)
        return spread_steps(view, (self._whitened(view, advantage) if self.whiten else advantage)[view.path])

    def _ancestors(self, view: Steps) -> Floats:
        """[P], before whitening."""
        place = place_of(view)
        apart = normalize(view.returns[view.path], place, std="none")
        size = np.bincount(place)[place]
        kept = (size > 1) | (view.turn == 0)
        if self.drop_ties:
            kept &= np.bincount(place, np.abs(apart))[place] > 0
        weight = np.where(kept, size if self.weight == "size" else 1.0, 0.0)
        total, weights = (sum_at(view.path, each, view.paths) for each in (weight * apart, weight))
        return total / np.where(weights > 0, weights, 1.0)

    def _whitened(self, view: Steps, advantage: Floats) -> Floats:
        """[P]."""
        learns = np.bincount(view.task, np.abs(advantage))[view.task] > 0
        tokens = sum_at(view.path, written(view), view.paths)[learns]
        batch, out = np.zeros(len(tokens), dtype=np.int64), np.zeros(len(advantage))
        out[learns] = normalize(
            advantage[learns], batch, mean="batch", std="batch", weight=tokens, epsilon=self.epsilon
        )
        return out
