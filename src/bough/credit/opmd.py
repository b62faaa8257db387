"""Advantages for policy mirror descent."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.normalize import normalize
from bough.piece import Above, piece
from bough.tree import Credited, Floats, Ints, Rewarded, path_view, spread_turns, sum_at


@piece
class OpmdBaseline:
    """Online policy mirror descent (arXiv 2501.12599): the return minus a plain or a soft mean of the task.

    The optimal policy under a divergence penalty of weight tau from the old one (Kimi k1.5) has

        R_p = tau * log (mean of exp(R / tau)) + tau * log(policy / old policy)

    Its first term is the soft mean, over paths sampled by the old policy; as tau grows it becomes the plain
    mean, which the paper uses in its gradient.

        returns                       1     0.5       0
        OpmdBaseline()              0.5       0    -0.5
        log_mean_exp, tau 1       0.418  -0.082  -0.582
        log_mean_exp, tau 0.1     0.109  -0.391  -0.891

    A group of one gets 0, like a tied group.

    Attributes:
        baseline: The mean to subtract.
        tau: Temperature of the soft mean, > 0.
        as_released: A group of one keeps its return (Trinity-RFT).
    """

    baseline: Literal["mean", "log_mean_exp"] = "mean"
    tau: Annotated[float, Above(0)] = 1.0
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.advantages(view.returns, view.task)[view.path])

    def advantages(self, returns: Floats, task: Ints) -> Floats:
        """[n] float64: the advantages of n paths with the given returns and tasks."""
        difference = normalize(returns, task, std="none")
        if self.baseline == "log_mean_exp":
            # The mean is already subtracted, so groups without a comparison stay at exactly 0.
            difference = difference - self._soft_mean(difference, task)[task]
        if not self.as_released:
            return difference
        return np.where(np.bincount(task)[task] == 1, returns, difference)

    def _soft_mean(self, value: Floats, task: Ints) -> Floats:
        """[tasks]: tau * log mean exp(value / tau)."""
        tasks = int(task.max(initial=-1)) + 1
        top = np.full(tasks, -np.inf)
        np.maximum.at(top, task, value)
        mass = sum_at(task, np.exp((value - top[task]) / self.tau), tasks)
        return top + self.tau * np.log(mass / np.bincount(task, minlength=tasks))
