"""Tracks the success rate of each task across steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.run_hooks import TaskSampler
from bough.needs import Need, estimate
from bough.piece import piece
from bough.tree import Floats, Rewarded, groups

RATE = "success_rate"
"""Name of the estimate: at every token of a tree, the tracked success rate of its task before the rollout."""


@piece
class Tracker:
    """Single-stream PO's tracker (arXiv 2509.13232): a Beta distribution of each task's success; returns in [0, 1].

    A task has alpha successes and beta failures, both fractional, and the rate alpha / (alpha + beta). When its k paths
    have returns r, the old counts decay with the policy's divergence since its last rollout of the task:

        rho = 2 ** (-D / half_nats), no lower than `min_decay` and no higher than `max_decay`
        alpha <- rho * alpha + sum r        beta <- rho * beta + sum (1 - r)

    With `min_decay` = 7/8 the counts hold at most 1 / (1 - 7/8) = 8 paths, which is also the weight of the first visit:
    n paths with s successes initialise a task with

        alpha = 8 (s + 1/2) / (n + 1)        beta = 8 (n - s + 1/2) / (n + 1)

    One success: alpha 6, beta 2, a rate of 0.75; then, D = 0, a failure: 5.76, 2.92, 0.664.

    The paper starts with n samples of every task, drawn before training; here these are the paths of a task's first
    visit, and until then (n = 0) its rate is 1/2. D is the divergence of the policies; here it is the sum, over the
    updates since the last visit, of each update's divergence on its own batch. The authors' code recomputes the task's
    last path and takes the mean absolute difference of log-probabilities, from after the update of that visit.

    Metrics: `tracker/divergence`, nats, of the last update; `tracker/rate`, the mean over the tasks seen so far.

    Attributes:
        half_nats: Divergence that halves the counts, > 0.
        min_decay: Minimum decay factor between visits, in (0, 1).
        max_decay: Maximum decay factor, from `min_decay` to 1.
        choose: Whether tasks are drawn in proportion to sqrt(rate * (1 - rate)) + `explore`, rather than in turn. The
            authors' code chooses from a few batches that come in turn; this from all tasks.
        explore: Added weight, so that tasks that always or never succeed are still drawn, > 0.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({estimate(RATE)})

    half_nats: float = 0.06
    min_decay: float = 0.875
    max_decay: float = 0.96
    choose: bool = False
    explore: float = 0.05

    def __post_init__(self) -> None:
        for name in ("half_nats", "explore"):
            if not getattr(self, name) > 0:
                raise ValueError(f"Tracker.{name}: got {getattr(self, name)}; need a number above 0")
        if not 0 < self.min_decay < 1 or not self.min_decay <= self.max_decay <= 1:
            raise ValueError(
                f"Tracker: got min_decay={self.min_decay}, max_decay={self.max_decay}; need 0 < min_decay < 1 and "
                "min_decay <= max_decay <= 1"
            )

    def kept(self, moved_nats: float) -> float:
        """Rho: the decay factor of a task's counts after this divergence of the policy."""
        return float(np.clip(2.0 ** (-moved_nats / self.half_nats), self.min_decay, self.max_decay))

    def prior(self, returns: Floats) -> tuple[float, float]:
        """Alpha and beta of a task after its first paths, any number of them."""
        weight = 1.0 / (1.0 - self.min_decay) / (len(returns) + 1)
        return weight * (float(returns.sum()) + 0.5), weight * (float((1.0 - returns).sum()) + 0.5)

    def build(self, setup: HookSetup) -> "TrackerState":
        """Return a tracker without records."""
        return TrackerState(self, setup)


@dataclass(slots=True, kw_only=True)
class Record:
    """The counts of a task.

    Attributes:
        alpha: Successes.
        beta: Failures.
        at_nats: Cumulative divergence of the policy at the last rollout of the task.
    """

    alpha: float
    beta: float
    at_nats: float

    @property
    def rate(self) -> float:
        """The expected return."""
        return self.alpha / (self.alpha + self.beta)


@dataclass(slots=True, kw_only=True)
class TrackerData:
    """The state of the hook.

    Attributes:
        records: By task id.
        moved_nats: The cumulative divergence of the policy.
    """

    records: dict[str, Record] = field(default_factory=dict[str, Record])
    moved_nats: float = 0.0


class TrackerState(BatchHook[Tracker], TaskSampler):
    """The records of all tasks."""

    def __init__(self, settings: Tracker, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: TrackerData = TrackerData()

    def rate(self, task: str) -> float:
        """The tracked success rate of a task."""
        return self.data.records[task].rate if task in self.data.records else 0.5

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Return the trees with the rate of their task; then add their returns to the records.

        Raises:
            ValueError: when a return is outside of [0, 1].
        """
        rates = [np.full(len(each.tree.token), self.rate(each.tree.task.id)) for each in rewarded]
        for group in groups([each for each in rewarded if not each.tree.replayed]):
            returns = np.concatenate([each.returns() for each in group])
            if len(returns):
                self._note(group[0].tree.task.id, returns)
        return [
            replace(each, estimates={**each.estimates, RATE: rate}) for each, rate in zip(rewarded, rates, strict=True)
        ]

    def after_update(self, divergence: Callable[[], float]) -> None:
        """Add the update's divergence."""
        nats = divergence()
        self.data.moved_nats += nats
        rates = [record.rate for record in self.data.records.values()]
        self.metrics = {"tracker/divergence": nats, "tracker/rate": float(np.mean(rates)) if rates else 0.5}

    def weigh(self, tasks: Sequence[str]) -> Floats | None:
        """[n]: the sampling weight of each task; None when tasks are drawn in turn."""
        if not self.settings.choose:
            return None
        rate = np.asarray([self.rate(task) for task in tasks])
        return np.sqrt(rate * (1.0 - rate)) + self.settings.explore

    def _note(self, task: str, returns: Floats) -> None:
        if not np.all((returns >= 0.0) & (returns <= 1.0)):
            raise ValueError(
                f"Tracker: got a return of {returns[np.argmax(np.abs(returns - 0.5))]:g} (task {task}); need returns "
                "from 0 to 1. Take rewards that sum to that, or a credit rule that compares the paths of a group"
            )
        known = self.data.records.get(task)
        if known is None:
            alpha, beta = self.settings.prior(returns)
        else:
            rho = self.settings.kept(self.data.moved_nats - known.at_nats)
            alpha, beta = rho * known.alpha + float(returns.sum()), rho * known.beta + float((1.0 - returns).sum())
        self.data.records[task] = Record(alpha=alpha, beta=beta, at_nats=self.data.moved_nats)
