"""Advantages normalised over the tokens of the whole batch, without groups."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from bough.credit.normalize import normalize
from bough.credit.returns import sum_ahead
from bough.needs import KL_IN_REWARD, REFERENCE, Need
from bough.piece import Above, AtLeast, Between, piece
from bough.tree import Bools, Credited, Floats, Ints, PathTokens, PathView, Rewarded, path_view, spread_tokens

ROUNDING = 1e-5
"""Nats. The engine's and the learner's log-probabilities of one policy may differ by less than this."""


@piece
class ReinforcePlusPlus:
    """REINFORCE++ (arXiv 2501.03262): returns to go, whitened over all tokens; needs a reference unless kl=0.

    One path a task is enough. For token j of a path, r_j is the reward at it (a turn's reward is at its last token)
    and k_j the divergence log policy - log reference there:

        G_j = r_j - kl * k_j + discount * G_(j+1)          A_j = (G_j - mean of G) / (std of G + epsilon)

    with mean and standard deviation (ddof 1) over all trained tokens of all counted paths of the batch, so long
    paths weigh more in them; a shared token counts for each path through it. Tokens that the policy did not sample are
    in no sum, mean or deviation; later rewards pass through them undiscounted. The paper has discount 1. Below 1 the
    discount is per token, as in released code (verl, `compute_reinforce_plus_plus_outcome_advantage`; OpenRLHF,
    `gamma`): G of two turns of two tokens, with rewards 0 and 1, is .125 .25 .5 1 at discount .5. verl carries G
    through observations since commit 1dda039b, as here; before, a token that was not sampled reset it to 0, so that
    earlier turns got none of the later rewards.

    In a batch of equal returns the whitening makes the divergence, however small, the whole signal.
    A divergence within rounding counts as zero, so a policy equal to its reference does not learn from noise.

    With `baseline="group"`, or `reinforce_pp_baseline()`, the paper's variant for several paths a task: every token of
    a path starts from its return minus the mean return of the task, and the divergence belongs in the loss, as
    `Kl(estimator="k2")`. Five paths, four of them of one task, without a reference:

        task         p      p      p      p      q
        returns      1      0      0      1    0.5
        tokens       3      2      3      1      2
        kl=0     1.156 -0.963 -0.963  1.156  0.096
        baseline 1.156 -0.963 -0.963  1.156      0
        released 0.870 -1.044 -1.044  0.870  0.870

    A group of one and a tied group get exactly 0 with that baseline. In the paper's formula they
    get minus the mean over tokens of the centred returns, which depends on the path lengths of other tasks. In released
    code (verl, `compute_reinforce_plus_plus_baseline_outcome_advantage`) a group of one has a baseline of 0, and the
    divisor of the whitening is sqrt(variance + epsilon), with and without `baseline`.

    Attributes:
        baseline: The mean subtracted from returns before the whitening.
        discount: Per sampled token, in (0, 1]; below 1 only without `baseline`.
        kl: Coefficient of the divergence in the reward, >= 0; 0 needs no reference. The paper gives no value;
            0.01 is the default of OpenRLHF, the authors' code. Without `baseline` only.
        epsilon: Added to the standard deviation, > 0.
        as_released: Whitening divides by sqrt(variance + epsilon). With `baseline`, a group of one also keeps its
            return, and tied groups are whitened.
    """

    baseline: Literal["none", "group"] = "none"
    discount: Annotated[float, Between(0, 1, "a number above 0, at most 1", above=True)] = 1.0
    kl: Annotated[float, AtLeast(0, "0 or more")] = 0.01
    epsilon: Annotated[float, Above(0)] = 1e-8
    as_released: bool = False

    def __post_init__(self) -> None:
        if self.baseline == "group" and self.kl:
            raise ValueError(
                f"ReinforcePlusPlus.kl: got {self.kl} with baseline='group'; need kl=0, and Kl(estimator='k2') in the "
                "objective"
            )
        if self.baseline == "group" and self.discount != 1:
            raise ValueError(
                f"ReinforcePlusPlus.discount: got {self.discount} with baseline='group', where all tokens of a path "
                "start from its return; need 1"
            )

    @property
    def needs(self) -> frozenset[Need]:
        """The reference's log-probabilities, when the divergence is in the reward."""
        return frozenset({REFERENCE} if self.kl else ())

    @property
    def gives(self) -> frozenset[Need]:
        """The divergence in the reward."""
        return frozenset({KL_IN_REWARD} if self.kl else ())

    @property
    def compares(self) -> Literal["task", "nothing"]:
        """Without `baseline`, tokens: those of one path differ in their later rewards, even when paths tie."""
        return "task" if self.baseline == "group" else "nothing"

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order."""
        view = path_view(rewarded)
        path_tokens = view.path_tokens
        sampled = ~np.isnan(view.of_tokens("logprob")[path_tokens.token])
        if self.baseline == "group":
            value, idle = self._beyond_group(view)
            value_ahead, idle = value[view.path][path_tokens.step], idle[view.path][path_tokens.step]
        else:
            value_ahead, idle = self._to_go(view, path_tokens, sampled), np.zeros(len(path_tokens.step), dtype=np.bool_)
        advantage = np.zeros(len(value_ahead))
        batch = np.zeros(int(sampled.sum()), dtype=np.int64)
        guard = "variance" if self.as_released else "added"
        advantage[sampled] = normalize(value_ahead[sampled], batch, std="group", epsilon=self.epsilon, guard=guard)
        return spread_tokens(view, np.where(idle, 0.0, advantage))

    def _beyond_group(self, view: PathView) -> tuple[Floats, Bools]:
        """[P] each: returns minus the mean of the task, and whether there was no comparison."""
        singleton = "raw" if self.as_released else "zero"
        value = normalize(view.returns, view.task, std="none", singleton=singleton)
        some = np.bincount(view.task[value != 0], minlength=int(view.task.max(initial=-1)) + 1)
        idle = np.zeros(view.paths, dtype=np.bool_) if self.as_released else some[view.task] == 0
        return value, idle

    def _to_go(self, view: PathView, path_tokens: PathTokens, sampled: Bools) -> Floats:
        """[E]: the sum of later rewards from each token on, minus the divergence."""
        ends = np.cumsum(np.bincount(path_tokens.step[sampled], minlength=len(view.reward)))
        # A reward is at the last sampled token of its turn; the decay counts the sampled tokens up to the next.
        decay = self.discount ** np.diff(ends, append=ends[-1:])
        to_last = np.where(sampled, ends[path_tokens.step] - np.cumsum(sampled), 0)
        paid = self.discount**to_last * sum_ahead(view.reward, decay, view.start)[path_tokens.step]
        if not self.kl:
            return paid
        divergence = view.of_tokens("logprob")[path_tokens.token] - view.of_tokens("reference")[path_tokens.token]
        start: Ints = np.searchsorted(view.path[path_tokens.step], np.arange(view.paths + 1))
        real = sampled & (np.abs(divergence) > ROUNDING)
        fade = np.where(sampled, self.discount, 1.0)
        return paid - self.kl * sum_ahead(np.where(real, divergence, 0.0), fade, start)


def reinforce_pp_baseline() -> ReinforcePlusPlus:
    """REINFORCE++-baseline (arXiv 2501.03262): minus the mean of the task, then whitened over the batch's tokens.

    The divergence from a reference is in the loss, `Kl(estimator="k2")`, not in the reward.
    """
    return ReinforcePlusPlus(baseline="group", kl=0.0)
