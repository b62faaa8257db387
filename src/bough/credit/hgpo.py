"""Advantages from comparing turns in the same state with the same history of states."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.gigpo import episode_part
from bough.credit.keys import group_by, state_of
from bough.credit.normalize import normalize
from bough.credit.returns import sum_ahead
from bough.credit.states import earlier
from bough.needs import STATE_KEYS, Need
from bough.piece import Above, AtLeast, Between, piece
from bough.tree import Bools, Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns


@piece
class Hgpo:
    """HGPO (arXiv 2602.22817): turns in the same state, weighted by shared history; needs state keys.

    Turns in one state differ when their histories differ. With c_k the last k states up to
    turn t, the current one included, G_t the discounted return from t on, and z_k the difference of G_t to the mean of
    the turns of the task with the same c_k, over their standard deviation (ddof 0) with norm "mean_std":

        A_t = sum_k w_k * z_k / (sum_k w_k + epsilon),   w_k = (k + 1)^alpha,   k = 1 .. history + 1

    over the k for which c_k exists (an episode's first turn has only c_1) and is shared by at least two turns. Where
    there is none, A_t is 0. Without history this is the second term of `Gigpo`. Three paths, G in brackets:

        a (.81)  b (.9)  c (1)       a (0)  b (0)  d (0)        e (.162)  b (.18)  f (.2)

        history=0, "mean"   0.405   0.54    0      -0.405  -0.36   0       0   -0.18   0
        history=2, "mean"   0.405   0.486   0      -0.405  -0.414  0       0   -0.18   0

    `base` adds the comparison of whole paths as z_0 with weight 1; a path alone in its task has none.

    The released code (`recipe/hgpo/core_hgpo.py` of verl-agent) omits every z_k that happens to be exactly 0, as
    if its group were too small, and computes the statistics of `base` over turns, not paths (`as_released`).

    Attributes:
        history: Maximum number of earlier states compared; the authors use 2 and 4.
        alpha: Growth of the weights with the length of the shared history; 0 gives equal weights.
        discount: Per turn, in [0, 1].
        norm: Whether differences are divided by the standard deviation.
        base: Whether whole paths are compared, too.
        epsilon: Added to standard deviations and to the sum of weights, > 0.
        as_released: Omits exact zeros; statistics of paths over turns.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({STATE_KEYS})

    history: Annotated[int, AtLeast(0, "0 or more")] = 2
    alpha: float = 1.0
    discount: Annotated[float, Between(0, 1)] = 0.95
    norm: Literal["mean", "mean_std"] = "mean_std"
    base: bool = False
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self._advantage(view))

    def _advantage(self, view: PathView) -> Floats:
        """[S]."""
        std = "group" if self.norm == "mean_std" else "none"
        ahead = sum_ahead(view.reward, np.full(len(view.reward), self.discount), view.start)
        total, weights = np.zeros(len(ahead)), np.zeros(len(ahead))

        def add(at: Ints, difference: Floats, length: int, compared: Bools) -> None:
            counts = compared & (difference != 0) if self.as_released else compared
            weight = np.where(counts, (length + 1.0) ** self.alpha, 0.0)
            total[at] += weight * difference
            weights[at] += weight

        here, shared = np.arange(len(ahead)), state_of(view)
        if self.base:
            alone = np.bincount(view.task)[view.task[view.path]] < 2
            add(here, episode_part(view, std, self.epsilon, self.as_released), 0, ~alone | self.as_released)
        state = shared
        for length in range(1, self.history + 2):
            z = normalize(ahead[here], shared, std=std, ddof=0, epsilon=self.epsilon)
            grouped = np.bincount(shared)[shared] > 1
            add(here, z, length, grouped)
            # A turn alone with k states is alone with more; a turn without an earlier state has no longer history.
            before = earlier(view, state, length)[here]
            grouped &= before >= 0
            here, shared = here[grouped], group_by(shared[grouped], before[grouped])
        return total / (weights + self.epsilon)
