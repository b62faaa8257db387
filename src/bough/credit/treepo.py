"""Advantages from comparing a path with all paths through each of its nodes."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.branches import mean_of_children, place_of, rise, value_after, value_before
from bough.credit.marks import written
from bough.credit.normalize import normalize
from bough.piece import Above, piece
from bough.tree import Credited, Floats, PathView, Rewarded, path_view, spread_turns, sum_at


@piece
class TreePo:
    """TreePO (arXiv 2508.17445): a path is compared at each of its nodes with all paths through the node.

    With d the turns of path p, and the group of d the n_d paths that continue from the node before p's turn d:

        delta_d = R_p - mean of R over the group of d
        A_p     = mean over d of delta_d, or sum of n_d delta_d / sum of n_d        ("size")

    where groups of one are omitted beyond the first turn, and with `drop_ties` tied groups;
    then A is whitened over the sampled tokens of the batch: (A - mean) / (std + epsilon), ddof 1. Two
    branches at the prompt and two below each, before whitening and, with equally long paths, after:

        returns                   1       0       0       0
        even                    0.625  -0.375  -0.125  -0.125      1.614  -0.968  -0.323  -0.323
        size                    0.667  -0.333  -0.167  -0.167
        even, drop_ties         0.625  -0.375  -0.25   -0.25

    The paper's segments have equally many tokens. Here a segment is an `ACTION` node: a whole turn, or the part of a
    turn sampled by `Segments`. A run of segments without a fork repeats the same comparison, as in the paper. Tied
    tasks are excluded from the whitening's mean and deviation, and get exactly 0; the paper's runs
    filter such tasks (DAPO).

    With `progress`, a mode of the released code, a segment gets its rise in value instead of the path's advantage. A
    path is compared with the paths through each of its prefixes, including the prompt and the whole path:

        W_p = sum over prefixes of size * (R_p - mean of R through the prefix) / sum over prefixes of size

    The value of a segment is the mean of the values of its child segments, W_p for the last, and 0 for the prompt. A
    segment gets its value minus that of the segment before. Before whitening, for the example above, and for two
    chains of three turns with returns 1 and 0:

        first turns   0.143 -0.143       after the first   0.429  -0.429       after the second   0  0
        first turns   0.2   -0.2         later turns       0

    The released code assumes segments of equal length, so an early stop within one misaligns it; this is not
    reproduced. `as_released` reproduces its whitening, by sqrt(variance + 1e-8) and over all tasks.

    Attributes:
        weight: Weights of the groups in the mean; the released script has "even". `progress` is by size.
        drop_ties: Whether tied groups are omitted, as they pull toward 0; not with `progress`.
        progress: Whether a segment's advantage is its rise in value.
        whiten: Whether the batch is whitened.
        epsilon: Added to the standard deviation, > 0.
        as_released: Whether whitening divides by sqrt(variance + 1e-8), over all tasks.
    """

    weight: Literal["even", "size"] = "even"
    drop_ties: bool = False
    progress: bool = False
    whiten: bool = True
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    def __post_init__(self) -> None:
        if self.progress and (self.drop_ties or self.weight != "even"):
            raise ValueError(
                f"TreePo.progress: got it with weight={self.weight!r}, drop_ties={self.drop_ties}; need the defaults, "
                "prefixes are weighed by size and none is dropped"
            )

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded).by_node
        advantage = self._progress(view) if self.progress else self._ancestors(view)[view.path]
        return spread_turns(view, self._whitened(view, advantage) if self.whiten else advantage)

    def _ancestors(self, view: PathView) -> Floats:
        """[P], before whitening."""
        place = place_of(view)
        difference = normalize(view.returns[view.path], place, std="none")
        size = np.bincount(place)[place]
        kept = (size > 1) | (view.turn == 0)
        if self.drop_ties:
            kept &= np.bincount(place, np.abs(difference))[place] > 0
        weight = np.where(kept, size if self.weight == "size" else 1.0, 0.0)
        total, weights = (sum_at(view.path, each, view.paths) for each in (weight * difference, weight))
        return total / np.where(weights > 0, weights, 1.0)

    def _progress(self, view: PathView) -> Floats:
        """[S], before whitening."""
        returns, first, through = view.returns[view.path], view.turn == 0, view.through[view.node]
        prompt = np.where(first, np.bincount(place_of(view))[place_of(view)], 0.0)
        difference = prompt * rise(returns, value_before(view, view.returns))
        difference += through * rise(returns, value_after(view, view.returns))
        total = sum_at(view.path, difference, view.paths)
        weights = sum_at(view.path, (prompt + through).astype(np.float64), view.paths)
        value, segment = mean_of_children(view, total / np.where(weights > 0, weights, 1.0))
        after = value[segment]
        return rise(after, np.where(first, 0.0, np.roll(after, 1)))

    def _whitened(self, view: PathView, advantage: Floats) -> Floats:
        """[S]."""
        tokens = written(view)
        if self.as_released:
            batch = np.zeros(len(advantage), dtype=np.int64)
            return normalize(advantage, batch, weight=tokens, epsilon=1e-8, guard="variance")
        task = view.task[view.path]
        learns = np.bincount(task, np.abs(advantage), minlength=1)[task] > 0
        batch, out = np.zeros(int(learns.sum()), dtype=np.int64), np.zeros(len(advantage))
        out[learns] = normalize(
            advantage[learns], batch, mean="batch", std="batch", weight=tokens[learns], epsilon=self.epsilon
        )
        return out
