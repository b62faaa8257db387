"""Implicit step rewards: a copy of the policy that prefers better paths, and its log-ratio to the sampling policy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup, PolicyCopy
from bough.hooks.hook_state import LazyPart
from bough.hooks.tie_tolerance import TIE_TOLERANCE
from bough.needs import Need, estimate
from bough.tree import Floats, Ints, PathView, Rewarded, path_view, sum_at


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitReward:
    """iStar's process reward model (arXiv 2509.19199): trained by DPO on pairs of paths, it pays each step.

    The model is a copy of the policy after its warm-up, with weights and an optimizer of its own; a policy with
    adapters has a second set of adapters. For every two paths of a task of which w has the higher return than l:

        Q(p) = sum over the sampled tokens of p of log (model / old policy)
        loss = mean over the pairs of -log sigmoid (beta * (Q(w) - Q(l)))

    The old policy is the one that sampled; its log-probabilities are those of the tree. The estimate "implicit" is
    beta * log (model / old policy) at each sampled token; its sum over a turn is the reward of the step, for `IStar`.
    Outcomes of 1 and 0 pair every success with every failure. Paths of equal return, rounding aside, make no pair.

    The released code takes the mean over the steps of a path for Q, which favours short paths: `as_released`. A
    log-ratio beyond `clip` counts as `clip` in the estimate; the paper has no bound.

    Metrics: `implicit/pairs`; `implicit/loss` and `implicit/accuracy`, the mean loss and the share of pairs with
    Q(w) > Q(l), both before the first update of the step; `implicit/gradient_norm` of the last one.

    Attributes:
        beta: Scale of the log-ratio, > 0.
        learning_rate: AdamW's.
        clip_norm: Largest norm of the gradient.
        updates: Optimizer steps on each batch.
        update: Whether the model learns from a batch before or after it pays the steps of the batch.
        clip: Largest log-ratio of a token in the estimate, nats.
        as_released: Whether Q is a mean over steps.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({estimate("implicit")})

    beta: float = 0.05
    learning_rate: float = 1e-4
    clip_norm: float = 1.0
    updates: int = 1
    update: Literal["before", "after"] = "before"
    clip: float = 5.0
    as_released: bool = False

    def __post_init__(self) -> None:
        for name in ("beta", "learning_rate", "clip_norm", "clip"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"ImplicitReward.{name}: got {getattr(self, name)}; need a finite number above 0")
        if self.updates < 1:
            raise ValueError(f"ImplicitReward.updates: got {self.updates}; need at least 1")

    def build(self, setup: HookSetup) -> "ImplicitRewardState":
        """A state without a model: the policy is copied at the first batch."""
        return ImplicitRewardState(self, setup)


@dataclass(slots=True, kw_only=True)
class ImplicitRewardData:
    """The state of the hook.

    Attributes:
        model: The trained copy of the policy, which is copied at the first batch.
    """

    model: LazyPart[PolicyCopy]


class ImplicitRewardState(BatchHook[ImplicitReward]):
    """The trained copy of the policy."""

    def __init__(self, settings: ImplicitReward, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: ImplicitRewardData = ImplicitRewardData(
            model=LazyPart(lambda: setup.policy.copy(settings.learning_rate, settings.clip_norm))
        )

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Train the model on the pairs of the batch, and add the estimate to its trees."""
        model = self.data.model()
        new = [each for each in rewarded if not each.tree.replayed]
        if self.settings.update == "before":
            self._learn(model, new)
        paid = self._paid(model, rewarded)
        if self.settings.update == "after":
            self._learn(model, new)
        return paid

    def _learn(self, model: PolicyCopy, rewarded: Sequence[Rewarded]) -> None:
        """The optimizer steps on the pairs of a batch."""
        view, beta = path_view(rewarded), self.settings.beta
        better, worse = pairs(view)
        self.metrics["implicit/pairs"] = self.metrics.get("implicit/pairs", 0.0) + len(better)
        if not len(better):
            return
        for number in range(self.settings.updates):
            quality = self._of_paths(view, log_ratios(view, model.logprobs(rewarded)))
            margin = beta * (quality[better] - quality[worse])
            if number == 0:
                self.metrics["implicit/loss"] = float(np.logaddexp(0.0, -margin).mean())
                self.metrics["implicit/accuracy"] = float((margin > 0).mean())
            pair_gradient = beta * np.exp(-np.logaddexp(0.0, margin)) / len(margin)
            gradient = sum_at(worse, pair_gradient, view.paths) - sum_at(better, pair_gradient, view.paths)
            norm = model.step(rewarded, _by_tree(rewarded, self._to_tokens(view, gradient)))
            self.metrics["implicit/gradient_norm"] = norm

    def _of_paths(self, view: PathView, ratio: Floats) -> Floats:
        """[P]: Q of each path, from the log-ratios of the tokens of the batch."""
        tokens = view.path_tokens
        total = sum_at(view.path[tokens.step], ratio[tokens.token], view.paths)
        return total / np.maximum(view.turns, 1) if self.settings.as_released else total

    def _to_tokens(self, view: PathView, gradient: Floats) -> Floats:
        """[T]: the derivative of the loss by each token's log-probability, from those by Q of the paths [P]."""
        tokens = view.path_tokens
        own = gradient / np.maximum(view.turns, 1) if self.settings.as_released else gradient
        summed = sum_at(tokens.token, own[view.path[tokens.step]], len(view.sampled))
        return np.where(view.sampled, summed, 0.0)

    def _paid(self, model: PolicyCopy, rewarded: Sequence[Rewarded]) -> list[Rewarded]:
        """The trees with the estimate, nan at tokens that the policy did not sample."""
        view, clip = path_view(rewarded), self.settings.clip
        ratio = np.clip(log_ratios(view, model.logprobs(rewarded)), -clip, clip)
        paid = np.where(view.sampled, self.settings.beta * ratio, np.nan).astype(np.float32)
        return [
            replace(each, estimates={**each.estimates, "implicit": own})
            for each, own in zip(rewarded, _by_tree(rewarded, paid), strict=True)
        ]


def pairs(view: PathView) -> tuple[Ints, Ints]:
    """[n] each: the better and the worse path of every two paths of a task with different returns, rounding aside."""
    better, worse = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for task in np.unique(view.task).tolist():
        paths = np.flatnonzero(view.task == task)
        returns = view.returns[paths]
        sizes = np.abs(returns)
        tolerance = TIE_TOLERANCE * np.maximum(1.0, np.maximum(sizes[:, None], sizes[None]))
        high, low = np.nonzero(returns[:, None] - returns[None] > tolerance)
        better.append(paths[high])
        worse.append(paths[low])
    return np.concatenate(better), np.concatenate(worse)


def log_ratios(view: PathView, logprobs: Sequence[Floats]) -> Floats:
    """[T]: log (model / old policy) at the sampled tokens of the batch on counted paths, 0 elsewhere."""
    ratio = np.concatenate([np.zeros(0), *logprobs]) - view.of_tokens("logprob")
    return np.where(np.isnan(ratio), 0.0, ratio)


def _by_tree(rewarded: Sequence[Rewarded], value: Floats) -> list[Floats]:
    """The tokens' values [T], tree by tree."""
    ends = np.cumsum([len(each.tree.token) for each in rewarded])[:-1]
    return np.split(value, ends) if rewarded else []
