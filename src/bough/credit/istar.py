"""Advantages of paths by their returns, and of steps by their implicit rewards."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np

from bough.credit.normalize import normalize
from bough.needs import Need, estimate
from bough.piece import Above, piece
from bough.tree import Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns, sum_at


@piece
class IStar:
    """iStar (arXiv 2509.19199): the outcome of paths and implicit rewards of steps; needs `ImplicitReward`.

    With R the return of a path, r the sum of the estimate "implicit" over a turn's sampled tokens, and n either return
    minus the mean of the others ("leave_one_out", as RLOO) or (value - mean) / (std + epsilon) ("group", as GRPO):

        A = n(R; paths of the task) + weight * n(r; turns of all paths of the task)

    Two paths of two steps, with R 1, 0 and r .3 .1, -.2 .4:

        leave_one_out      1.2    .933    -1.467   -.667        as_released    1.5     1.1     -1.5   -.3
        group             1.274    .518    -2.030    .238        as_released    1.414    .849   -1.414  .283

    The released code computes the mean and deviation of r, and the number of values, from the first turn of each path
    alone (`as_released`). A task with a single path or turn, and a tie, get 0.

    Attributes:
        weight: Of the steps' part.
        norm: How values are compared.
        epsilon: Added to standard deviations, > 0.
        as_released: Statistics of steps over first turns.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({estimate("implicit")})
    weight: float = 1.0
    norm: Literal["leave_one_out", "group"] = "leave_one_out"
    epsilon: Annotated[float, Above(0)] = 1e-6
    as_released: bool = False

    @property
    def compares(self) -> Literal["nothing", "task"]:
        """All turns of a task are compared, so those of a single path too; as released paths alone."""
        return "task" if self.as_released else "nothing"

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.of_steps(view, step_rewards(view)))

    def of_steps(self, view: PathView, reward: Floats) -> Floats:
        """[S]: the advantage of each turn, from the implicit rewards of the turns [S]."""
        of_path = self._normalize(view.returns, view.task)
        of_step = (
            self._by_first_turns(view, reward) if self.as_released else self._normalize(reward, view.task[view.path])
        )
        return of_path[view.path] + self.weight * of_step

    def _normalize(self, value: Floats, task: Ints) -> Floats:
        if self.norm == "group":
            return normalize(value, task, epsilon=self.epsilon)
        return normalize(value, task, mean="leave_one_out", std="none")

    def _by_first_turns(self, view: PathView, reward: Floats) -> Floats:
        """[S]: rewards compared with those of the first turns of the task's paths."""
        acted = view.turns > 0
        first, owner, tasks = reward[view.start[:-1][acted]], view.task[acted], int(view.task.max(initial=-1)) + 1
        count = np.bincount(owner, minlength=tasks).astype(np.float64)
        mean = sum_at(owner, first, tasks) / np.maximum(count, 1)
        others = count / np.maximum(count - 1, 1)
        if self.norm == "group":
            variance = sum_at(owner, (first - mean[owner]) ** 2, tasks) / np.maximum(count - 1, 1)
            others = 1 / (np.sqrt(variance) + self.epsilon)
        task = view.task[view.path]
        return np.where(count[task] > 1, (reward - mean[task]) * others[task], 0.0)


def step_rewards(view: PathView) -> Floats:
    """[S]: the sum of the estimate "implicit" over the sampled tokens of each turn."""
    tokens = view.path_tokens
    implicit = np.where(view.sampled, view.of_tokens("implicit"), 0.0)
    return sum_at(tokens.step, implicit[tokens.token], len(view.path))
