"""Advantages from comparing paths within a task and within a tree."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.branches import trunk_of
from bough.credit.normalize import normalize
from bough.piece import Above, piece
from bough.tree import Credited, Floats, Ints, Rewarded, path_view, spread_turns


@piece
class TreeGrpo:
    """Tree-GRPO (arXiv 2509.21240): compares the paths of a task, and the paths with one first chain.

    With z the z-score (ddof 1) of a path's return within a group, and the tree of a path all paths forked from one
    chain (its trunk: stored by `Forks`, else the paths with the same first action):

        A_p = z(R_p; task) + z(R_p; tree)

    for every token of the path. Three paths in each of two trees of one task:

        returns          1       0       0       1       1       0
        mode="sum"     2.068  -1.490  -1.490   1.490   1.490  -2.068
        mode="series"  1.155  -0.577  -0.577   0.577   0.577  -1.155

    The advantage is one for the whole path, not per turn. The method's gain is cheaper
    paths, as tokens up to the fork are sampled once. At tokens shared by paths, all their advantages apply;
    as a loss counts a token once for each path, the gradient is their sum, as in the paper.

    The released code (`compute_grpo_outcome_advantage`, called twice) gives a path alone in its group its
    return instead of 0 (`as_released`), and can apply the second z-score to the first ("series") or use it alone
    ("tree").

    Attributes:
        mode: How the two comparisons are combined.
        epsilon: Added to standard deviations, > 0.
        as_released: A path alone in a group keeps its return.
    """

    mode: Literal["sum", "series", "tree"] = "sum"
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.advantages(view.returns, view.task, trunk_of(view))[view.path])

    def advantages(self, returns: Floats, task: Ints, tree: Ints) -> Floats:
        """[n] float64: the advantages of n paths with the given returns, tasks and trees, both numbered from 0."""
        in_task = self._score(returns, task)
        if self.mode == "sum":
            return np.add(in_task, self._score(returns, tree))
        return self._score(in_task if self.mode == "series" else returns, tree)

    def _score(self, value: Floats, group: Ints) -> Floats:
        singleton = "raw" if self.as_released else "zero"
        return normalize(value, group, std="group", epsilon=self.epsilon, singleton=singleton)
