"""What a run had spent and reached at each of its held-out evaluations."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from bough.compare.statistics import Floats
from bough.store import RunDirectory, StoreError, read_metrics
from bough.store.heldout import StoredHeldout, read_heldout_results
from bough.train.stored_settings import load_run

Budget: TypeAlias = Literal["tokens", "actions", "seconds"]
"""What runs are held equal in: sampled tokens, actions (steps of environments), or wall time of the steps."""

Measure: TypeAlias = Literal["success", "reward"]
"""What is compared: held-out success, or held-out reward."""

METRICS: Mapping[Budget, str] = {"tokens": "speed/sampled_tokens", "actions": "speed/actions", "seconds": "time/step_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A run's held-out results over what it had spent; evaluations ascend.

    Attributes:
        steps: The steps of the evaluations, [evaluations].
        spent: By kind of budget, what the steps of reinforcement had cost until then, [evaluations].
        tasks: The held-out tasks that every evaluation measured.
        values: Success or reward of each of them, [evaluations, tasks].
        solved: Whether the run ended before its last step because nothing was left to learn.
    """

    steps: Sequence[int]
    spent: Mapping[Budget, Floats]
    tasks: Sequence[str]
    values: Floats
    solved: bool = False

    def reach(self, budget: Budget) -> float:
        """The largest budget for which the run has a value; infinite where it solved its tasks before."""
        return math.inf if self.solved else float(self.spent[budget][-1])

    def at(self, budget: Budget, amount: float, tasks: Sequence[str]) -> Floats:
        """The values of some tasks at a budget, between its two nearest evaluations; [tasks]."""
        place = {task: number for number, task in enumerate(self.tasks)}
        values = self.values[:, [place[task] for task in tasks]]
        spent = self.spent[budget]
        later = min(int(np.searchsorted(spent, amount)), len(spent) - 1)
        earlier = max(0, later - 1)
        gap = float(spent[later] - spent[earlier])
        share = min(1.0, (amount - float(spent[earlier])) / gap) if gap else 1.0
        return (1 - share) * values[earlier] + share * values[later]


def read_curve(directory: Path, measure: Measure | None = None) -> tuple[Curve, Measure]:
    """The curve of a run, and what it measures: rewards where they are graded, else success.

    Args:
        directory: The run directory.
        measure: What is measured, in place of that.

    Raises:
        StoreError: when there is no run, no held-out result, no reward where it is asked, or a file is damaged.
    """
    files = RunDirectory.open(directory)
    results = read_heldout_results(files)
    if not results:
        raise StoreError(f"{directory}: got no held-out result; need a run with evaluation.every above 0, at its first")
    first = results[min(results)]
    chosen: Measure = measure or ("reward" if first.graded and first.rewards else "success")
    by_step = {step: _values(each, chosen) for step, each in sorted(results.items())}
    tasks = [task for task in by_step[min(by_step)] if all(task in each for each in by_step.values())]
    if not tasks:
        raise StoreError(f"{directory}: got no held-out task with a {chosen} at every evaluation; need one or more")
    rows = read_metrics(files.metrics)
    run = load_run(files)
    is_short = float(rows[-1]["step"]) < run.warmup_steps + run.world.schedule.steps
    return Curve(
        steps=[*by_step],
        spent={name: _spent(rows, metric, [*by_step]) for name, metric in METRICS.items()},
        tasks=tasks,
        values=np.asarray([[each[task] for task in tasks] for each in by_step.values()], dtype=np.float64),
        solved=is_short and files.final.is_dir() and float(rows[-1].get("train/success", 0.0)) == 1,
    ), chosen


def _values(result: StoredHeldout, measure: Measure) -> Mapping[str, float]:
    return result.rewards if measure == "reward" else {task: float(each) for task, each in result.successes.items()}


def _spent(rows: Sequence[Mapping[str, int | float | str]], metric: str, steps: Sequence[int]) -> Floats:
    """The sum of a metric over the steps of reinforcement until each evaluation, over all policies."""
    each = [
        sum(float(value) for name, value in row.items() if name == metric or name.endswith(f"/{metric}"))
        for row in rows
    ]
    total = np.cumsum(np.nan_to_num(np.asarray(each)))
    numbers = [int(float(row["step"])) for row in rows]
    return np.asarray([float(total[int(np.searchsorted(numbers, step, side="right")) - 1]) for step in steps])
