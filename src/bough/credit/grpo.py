"""Advantages from comparing the paths of one task: GRPO and its named variants."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.marks import written
from bough.credit.normalize import Guard, normalize
from bough.piece import Above, Between, piece
from bough.tree import Credited, Floats, Ints, PathView, Rewarded, path_view, spread_turns, sum_at


@piece
class Grpo:
    """GRPO (arXiv 2402.03300): return minus the task's mean, over its standard deviation; needs several a task.

    Over the n counted paths of all trees of a task, with returns R and standard deviation s (ddof 1):

        A_p = (R_p - baseline_p) / (s + epsilon)

        baseline_p = mean of R, or mean of R without R_p, or sum of length * R / sum of length

    and every trained token of path p gets A_p. Statistics are per path, however many turns or texts a path has. A
    group of one, and a tied group, get exactly 0: they carry no learning signal.

        returns       1       0       0      1
        Grpo()    0.866  -0.866  -0.866  0.866
        dr_grpo()   0.5    -0.5    -0.5    0.5
        rloo()    0.667  -0.667  -0.667  0.667

        length        3       2       3      1
        opo()     0.556  -0.444  -0.444  0.556

    Paths are assumed independent given the task. Where they share sampled turns (a search tree), each baseline depends
    on the shared turns too, and the estimate at those turns is biased toward zero.

    Attributes:
        mean: Baseline: the mean of the group, of the other paths, or over the sampled tokens of the
            group ("tokens"; the standard deviation of the group is over them, too).
        std: Divides by the standard deviation of the group, of all returns of the batch, or not at all. The first
            gives tasks that are rarely or nearly always solved more weight than the gradient of the success rate does.
        epsilon: Added to the standard deviation, > 0.
        guard: The divisor: "added" std + epsilon, "floor" max(std, epsilon), "variance" sqrt(variance + epsilon).
        ddof: Subtracted from the number of returns in the standard deviation, 0 or 1.
        as_released: A group of one as in the released code (verl, `compute_grpo_outcome_advantage`): mean 0
            and standard deviation 1, so that its advantage is its return. With std="batch" (Trinity-RFT,
            `GRPOGroupedAdvantage`): mean 0 and the standard deviation of the batch.
    """

    mean: Literal["group", "leave_one_out", "tokens"] = "group"
    std: Literal["group", "batch", "none"] = "group"
    epsilon: Annotated[float, Above(0)] = 1e-6
    guard: Guard = "added"
    ddof: Annotated[int, Between(0, 1, "0 or 1")] = 1
    as_released: bool = False

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        return spread_turns(view, self.of_paths(view)[view.path])

    def of_paths(self, view: PathView) -> Floats:
        """[P] float64: the advantage of each path of a batch."""
        tokens = sum_at(view.path, written(view), view.paths) if self.mean == "tokens" else None
        return self.advantages(view.returns, view.task, tokens)

    def advantages(self, returns: Floats, task: Ints | None = None, tokens: Floats | None = None) -> Floats:
        """[n] float64: the advantages of n paths with the given returns.

        Args:
            returns: [n].
            task: [n], number of the task; None when all are of one.
            tokens: [n], number of sampled tokens; None when all lengths are equal.
        """
        return normalize(
            returns,
            np.zeros(len(returns), dtype=np.int64) if task is None else task,
            mean="group" if self.mean == "tokens" else self.mean,
            std=self.std,
            weight=tokens if self.mean == "tokens" else None,
            ddof=self.ddof,
            epsilon=self.epsilon,
            guard=self.guard,
            singleton="raw" if self.as_released else "zero",
        )


def dr_grpo() -> Grpo:
    """Dr.GRPO (arXiv 2503.20783): no division by the standard deviation; needs several paths a task.

    This is half of the method; the other half is a loss with a constant divisor, `Normalizer(by="constant")`.
    """
    return Grpo(std="none")


def rloo() -> Grpo:
    """RLOO (arXiv 2402.14740): return minus the mean of the other paths, without bias; needs several a task.

    The paper treats a whole completion as one action; here each token has its own ratio in the loss. A group of one
    has no other paths and gets 0, where released code gives its return (`as_released`).
    """
    return Grpo(mean="leave_one_out", std="none")


def loop(scale: bool = False) -> Grpo:
    """LOOP (arXiv 2502.01600): RLOO over whole episodes of an agent, for PPO with several epochs and no critic.

    The rest of the method is in its loss, a clip to [1 / (1 + e), 1 + e] and a mean within each path before the mean
    over paths, and in its filter, `SmallAdvantage`. With `scale`, an option of the released code (apple/ml-loop,
    `adv_normalization`), the advantage is divided by max(s, 1e-7), s the population standard deviation of the returns.

        returns             1       0    0.5
        loop()           0.75   -0.75      0
        loop(scale=True) 1.837  -1.837     0
    """
    if scale:
        return Grpo(mean="leave_one_out", ddof=0, epsilon=1e-7, guard="floor")
    return Grpo(mean="leave_one_out", std="none")


def opo() -> Grpo:
    """On-policy RL with the optimal baseline (arXiv 2505.23585): mean of the returns, weighted by path length.

    That is the baseline of least variance when the squared norm of a path's gradient grows with its length. A path's
    length is the number of tokens that the policy sampled. The method takes one exactly on-policy step per batch, with
    neither a clip nor a divergence in the loss.
    """
    return Grpo(mean="tokens", std="none")


def lite_ppo(as_released: bool = False) -> Grpo:
    """Lite PPO (arXiv 2508.08221): minus the mean of the task, over the standard deviation of the whole batch.

    The batch's deviation has less variance than a small group's, and does not favour tasks that are nearly always
    solved. The deviation is of the raw returns, not of the centred ones. The other half of the method is a loss whose
    mean is over tokens, `Normalizer(by="path_tokens")`.

        task       a       a      b       b
        returns    1       0      3       1
        A      0.397  -0.397  0.795  -0.795

    With `as_released` (Trinity-RFT, `std_cal_level="batch"`) a group of one has mean 0, and its return is divided by
    the standard deviation of the batch. ROLL, the other released code, gives it 0.
    """
    return Grpo(std="batch", as_released=as_released)


def rec() -> Grpo:
    """Group-relative REINFORCE (REC, arXiv 2509.24203): minus the mean of the task, for losses that clip by a mask.

    The advantage is that of `dr_grpo`; the loss defines the method. Trinity-RFT can also divide by the population
    standard deviation, `Grpo(ddof=0)`, and raises at a group of one, which gets 0 here.

        returns      1    0.5       0
        rec()      0.5      0    -0.5
        divided  1.225      0  -1.225
    """
    return Grpo(std="none")
