"""The cells and pairs of a comparison."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bough.compare.curve import Budget, Measure
from bough.compare.statistics import Difference, Floats, difference

ALL_WORLDS = "all worlds"
"""The world of a pair over all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A method on a world.

    Attributes:
        method: The method.
        world: The world.
        measure: What its values are.
        seeds: Seeds of the runs with a result.
        tasks: The held-out tasks.
        values: What each run reached on each task at the budget, [seeds, tasks].
        low: Lower end of the interval of the mean over seeds and tasks (bootstrap).
        high: Upper end.
        start: The values at the first evaluation, [seeds, tasks].
        spent: What a run had cost at its end, by kind of budget, mean over runs.
        failures: By seed, why a run has no result.
    """

    method: str
    world: str
    measure: Measure
    seeds: Sequence[int]
    tasks: Sequence[str]
    values: Floats
    low: float
    high: float
    start: Floats
    spent: Mapping[Budget, float]
    failures: Mapping[int, str] = field(default_factory=dict[int, str])

    @property
    def mean(self) -> float:
        """Mean over seeds and tasks; nan without a run."""
        return float(self.values.mean()) if self.values.size else math.nan

    @property
    def gain(self) -> Difference:
        """What reinforcement added: the values minus those at the start."""
        return difference(self.values, self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two methods on a world, on the same tasks.

    Attributes:
        method: The method.
        against: The method that it is held against.
        world: The world; `ALL_WORLDS` for the mean over worlds.
        difference: `method` minus `against`.
        corrected: The p-value after Holm's correction over all pairs; nan where chance has no estimate.
        detectable: The smallest true difference that these runs would show in four of five comparisons.
        improvement: Probability that a run of `method` is better than one of `against`, ties by half.
        better: Number of tasks on which `method` is better, on the mean over seeds.
        worse: Number of tasks on which it is worse.
        paired: Whether runs of the same seeds were paired.
        seeds: Number of seeds, or the smaller number where they are not paired.
    """

    method: str
    against: str
    world: str
    difference: Difference
    corrected: float
    detectable: float
    improvement: float
    better: int
    worse: int
    paired: bool
    seeds: int

    @property
    def verdict(self) -> str:
        """better, worse, or unclear: whether the corrected p-value is below .05."""
        if not self.corrected < 0.05:
            return "unclear"
        return "better" if self.difference.mean > 0 else "worse"
