"""Credit by comparing the paths of one task: GRPO, with the switches that make it Dr.GRPO and RLOO."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bough.credit.normalize import normalize
from bough.tree import Credited, Floats, Ints, Rewarded, Steps, spread_steps, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Grpo:
    """Group-relative policy optimization (arXiv 2402.03300): a path is as good as it beats the paths of the same task.

    Over the n counted paths of all trees of a task, with returns R and standard deviation s (ddof 1):

        A_p = (R_p - baseline_p) / (s + epsilon)        baseline_p = mean of R, or mean of R without R_p

    and every trained token of path p gets A_p. Statistics are per path, however many turns or texts a path has. A
    group of one, and a group whose returns are all equal, get exactly 0: nothing can be learned from it.

        returns       1       0       0      1
        Grpo()    0.866  -0.866  -0.866  0.866
        dr_grpo()   0.5    -0.5    -0.5    0.5
        rloo()    0.667  -0.667  -0.667  0.667

    Paths are taken to be independent given the task. Where they share sampled turns (a search tree), each baseline has
    seen the shared turns too, and the estimate at those turns is biased toward zero.

    Attributes:
        mean: Baseline: the mean of the group, or of the other paths.
        std: Whether to divide by the standard deviation of the group. Doing so weighs tasks that are rarely or nearly
            always solved more than the gradient of the success rate would.
        epsilon: Added to the standard deviation, > 0.
        as_released: What the released code does with a group of one (verl, `compute_grpo_outcome_advantage`): mean 0
            and standard deviation 1, so that its advantage is its return.
    """

    mean: Literal["group", "leave_one_out"] = "group"
    std: Literal["group", "none"] = "group"
    epsilon: float = 1e-6
    as_released: bool = False

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ValueError(f"Grpo.epsilon: got {self.epsilon}; need a number above 0")

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        view = steps(rewarded)
        return spread_steps(view, self.of_paths(view)[view.path])

    def of_paths(self, view: Steps) -> Floats:
        """[P] float64: the advantage of each path of a batch."""
        return self.advantages(view.returns, view.task)

    def advantages(self, returns: Floats, task: Ints | None = None) -> Floats:
        """[n] float64: the advantages of n paths with the given returns, of one task or of the tasks numbered."""
        task = np.zeros(len(returns), dtype=np.int64) if task is None else task
        singleton = "raw" if self.as_released else "zero"
        return normalize(returns, task, mean=self.mean, std=self.std, epsilon=self.epsilon, singleton=singleton)


def dr_grpo() -> Grpo:
    """GRPO done right (arXiv 2503.20783): no division by the standard deviation.

    This is half of the method; the other half is a loss with a constant divisor, `Share(by="constant")`.
    """
    return Grpo(std="none")


def rloo() -> Grpo:
    """REINFORCE leave-one-out (arXiv 2402.14740): against the mean of the other paths, which leaves no bias.

    The paper takes a whole completion as one action; here each token has its own ratio in the loss. A group of one has
    no others and gets 0, where released code gives its return (`as_released`).
    """
    return Grpo(mean="leave_one_out", std="none")
