"""Credit by how much better a place is than the beginning, and than the fork before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bough.credit.branches import rise, stem_of, value_after, value_before
from bough.credit.marks import written
from bough.credit.normalize import normalize
from bough.tree import Credited, Floats, Rewarded, Steps, spread_steps, steps, sum_at


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRl:
    """TreeRL (arXiv 2506.11902): value over the prompt's plus value over the last fork's; needs a branching tree.

    The value of a place is the mean return of the counted paths through it, L of them. A node of the paper is a stretch
    of turns without a fork (`stem_of`); each of its tokens gets

        A = ((V - V of the prompt) + (V - V of the fork where the stretch begins)) / sqrt(L)

    The prompts of a task are one place. As a loss counts a token once for each of the L paths, a shared stretch weighs
    sqrt(L) in it. A chain that came to 1 and was forked twice at one turn, to 0 and 0, and a second chain that came to
    1:

        stretch            shared    its tail   fork 1    fork 2    second chain
        weight="none"      -0.333     1.167     -0.833    -0.833     1
        weight="sqrt"      -0.192     1.167     -0.833    -0.833     1
        as_released        -0.257     1.462     -1.205    -1.205     1.333

    The released code (`ppo_utils/parallel_mcts.py`) starts from the difference of a return to the mean of the others of
    the task, less the mean of these differences over tokens, which is n / (n - 1) times as large; and it divides V and
    the parent's V by their own square roots before it subtracts them, so that what it computes is not the formula. It
    also overwrites values that are exactly 0 with the parent's; that is not reproduced.

    Attributes:
        weight: Whether to divide by the square root of L.
        as_released: Each value divided by its own square root.
    """

    weight: Literal["sqrt", "none"] = "sqrt"
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = steps(rewarded)
        return spread_steps(view, self._released(view) if self.as_released else self._formula(view))

    def _formula(self, view: Steps) -> Floats:
        """[S]."""
        after, before = value_after(view, view.returns), value_before(view, view.returns)
        prompt = before[view.start[view.path]]
        whole = rise(after, prompt) + rise(after, before[stem_of(view)])
        return whole / self._divisor(view)

    def _released(self, view: Steps) -> Floats:
        """[S]."""
        others = normalize(view.returns, view.task, mean="leave_one_out", std="none")
        tokens = sum_at(view.path, written(view), view.paths)
        centred = normalize(others, view.task, std="none", weight=tokens)
        value = value_after(view, centred) / self._divisor(view)
        stem = stem_of(view)
        parent = np.where(view.turn[stem] > 0, value[np.maximum(stem - 1, 0)], 0.0)
        return value + rise(value, parent)

    def _divisor(self, view: Steps) -> Floats:
        paths = view.through[view.node].astype(np.float64)
        return np.sqrt(paths) if self.weight == "sqrt" else np.ones_like(paths)
