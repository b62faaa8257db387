"""Draws the tasks that the policy fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.hooks.run_hooks import TaskSampler
from bough.tree import Floats, Rewarded, Ternary, counted, groups


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSampling:
    """iTool's choice of tasks (arXiv 2501.09766): tasks that the policy fails are drawn more often.

    With s the share of a task's paths that succeeded when it was last drawn, tasks are drawn, each at most once in a
    batch, with weights

        floor + (1 - floor) * (1 - s)        1 for a task that was not drawn yet

        floor .05, s = 1 0 .5:    .05   1   .525

    The paper runs its model on all data before each round and takes wrong answers; here a task that was never drawn
    counts as failed, and later rounds use the paths of earlier ones.

    Metrics: `failures/known`, tasks drawn so far; `failures/rate`, the mean of 1 - s over them.

    Attributes:
        floor: Weight of a task whose paths all succeed, in (0, 1].
    """

    floor: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.floor <= 1:
            raise ValueError(f"FailureSampling.floor: got {self.floor}; need a number above 0 and up to 1")

    def build(self, setup: HookSetup) -> "FailureSamplingState":
        """Return a state without tasks."""
        return FailureSamplingState(self, setup)


@dataclass(slots=True, kw_only=True)
class FailureSamplingData:
    """The state of the hook.

    Attributes:
        success: By task id, the share of successful paths when it was last drawn.
    """

    success: dict[str, float] = field(default_factory=dict[str, float])


class FailureSamplingState(BatchHook[FailureSampling], TaskSampler):
    """The share of successful paths of each task."""

    def __init__(self, settings: FailureSampling, setup: HookSetup) -> None:
        super().__init__(settings, setup)
        self.data: FailureSamplingData = FailureSamplingData()

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """Record the batch's successes, and return the batch unchanged."""
        for group in groups([each for each in rewarded if not each.tree.replayed]):
            ends = [each.tree.success[counted(each.tree)] == Ternary.YES for each in group]
            if any(map(len, ends)):
                self.data.success[group[0].tree.task.id] = float(np.concatenate(ends).mean())
        return list(rewarded)

    def observe(self) -> Mapping[str, float]:
        """Return the metrics of the step."""
        known = list(self.data.success.values())
        return {
            "failures/known": float(len(known)),
            "failures/rate": 1.0 - float(np.mean(known)) if known else 1.0,
        }

    def weigh(self, tasks: Sequence[str]) -> Floats:
        """[n]: the sampling weight of each task."""
        floor = self.settings.floor
        return floor + (1 - floor) * (1.0 - np.asarray([self.data.success.get(task, 0.0) for task in tasks]))
