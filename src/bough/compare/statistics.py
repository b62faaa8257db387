"""Statistics of values that vary with the seed of a run and with the task: intervals, differences, corrections."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bough.version import install

Floats: TypeAlias = NDArray[np.float64]

DRAWS = 10_000
"""Resamples of a bootstrap interval."""

POWER = 0.8
"""Probability with which a detectable difference is found."""

MOST_SEEDS = 1000
"""Largest number of seeds that `needed_seeds` tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A source of chance in a difference.

    Attributes:
        variance: Its share in the squared standard error.
        degrees: Degrees of freedom of the estimate.
    """

    variance: float
    degrees: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference of two means, and its chance.

    The standard error has a part for seeds and one for tasks: the difference would vary with both. As the noise of
    single episodes is in both parts, it is rather too large. Interval and p-value are those of Student's t with the
    degrees of freedom of the seeds, after Satterthwaite (Biometrics Bulletin 2, 1946) where there are several parts:
    with those of the tasks too, a part of seeds that came out too small by chance would count less, and up to 7 % of
    equal methods would differ at a level of 5 %. With tasks or seeds alone it is the t-test of pairs.

    Attributes:
        mean: The difference.
        seeds: Its parts of seeds: one where both have the same seeds, two where they have not, none for a single seed.
        tasks: Its part of tasks; none for a single task.
    """

    mean: float
    seeds: tuple[Part, ...]
    tasks: tuple[Part, ...]

    @property
    def error(self) -> float:
        """The standard error; nan without any part, 0 where nothing varies."""
        parts = self.seeds + self.tasks
        return float(np.sqrt(sum(each.variance for each in parts))) if parts else float("nan")

    @property
    def degrees(self) -> float:
        """Degrees of freedom: those of the seeds, of the tasks for one seed; nan without any part."""
        parts = self.seeds or self.tasks
        known = sum(each.variance**2 / each.degrees for each in parts)
        if not known:
            return float(min((each.degrees for each in parts), default=np.nan))
        return sum(each.variance for each in parts) ** 2 / known

    @property
    def p(self) -> float:
        """Two-sided p-value of no difference; nan where nothing varies, so that chance has no estimate."""
        if not self.error > 0:
            return float("nan")
        return 2 * float(_special().stdtr(self.degrees, -abs(self.mean) / self.error))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The ends of its interval, low and high; nan where nothing varies."""
        if not self.error > 0:
            return float("nan"), float("nan")
        half = float(_special().stdtrit(self.degrees, 0.5 + level / 2)) * self.error
        return self.mean - half, self.mean + half

    def detectable(self, level: float = 0.05) -> float:
        """The smallest true difference that a test at `level` finds with the probability `POWER`.

        By the noncentral t with the standard error and degrees of freedom found here; nan where nothing varies.
        """
        return _detectable(self.error, self.degrees, level)

    def needed_seeds(self, difference: float, seeds: int, level: float = 0.05) -> int:
        """How many seeds would show a difference, if seeds vary as the `seeds` did here; 0 where no number does."""
        if not self.seeds:
            return 0
        for count in range(2, MOST_SEEDS + 1):
            scaled = tuple(
                Part(variance=each.variance * seeds / count, degrees=each.degrees * (count - 1) // max(1, seeds - 1))
                for each in self.seeds
            )
            more = Difference(mean=self.mean, seeds=scaled, tasks=self.tasks)
            if more.detectable(level) <= difference:
                return count
        return 0


def difference(one: Floats, other: Floats, *, same_seeds: bool = True) -> Difference:
    """The difference of the means of two sets of runs on the same tasks.

    Args:
        one: Values by seed and task, [seeds, tasks].
        other: The same, [seeds, tasks].
        same_seeds: Whether a row of both has the same seed, so that the two are paired.
    """
    rows = [(one - other).mean(axis=1)] if same_seeds else [one.mean(axis=1), other.mean(axis=1)]
    tasks = one.mean(axis=0) - other.mean(axis=0)
    return Difference(mean=float(tasks.mean()), seeds=_parts(rows), tasks=_parts([tasks]))


def mean_difference(several: Sequence[Difference]) -> Difference:
    """The mean of independent differences, such as those of several worlds."""
    count = len(several)

    def scaled(parts: tuple[Part, ...]) -> list[Part]:
        return [Part(variance=each.variance / count**2, degrees=each.degrees) for each in parts]

    return Difference(
        mean=sum(each.mean for each in several) / count,
        seeds=tuple(part for each in several for part in scaled(each.seeds)),
        tasks=tuple(part for each in several for part in scaled(each.tasks)),
    )


def bootstrap_interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of a mean over seeds and tasks, both drawn with replacement, independently of each other.

    Resampling rows and columns apart is conservative for the noise of single cells: Owen, "The pigeonhole bootstrap",
    Annals of Applied Statistics 1 (2007) 386-411, arXiv 0712.1111.

    Args:
        values: [seeds, tasks].
        level: Confidence level.
    """
    random = np.random.default_rng(0)
    rows, columns = (_weights(random, count) for count in values.shape)
    means = ((rows @ values) * columns).sum(axis=1)
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def improvement(one: Floats, other: Floats) -> float:
    """The probability that a run of the one is better than a run of the other, ties counted by half.

    Mann and Whitney's U by the number of pairs of runs; over runs as in arXiv 2108.13264.

    Args:
        one: A value for each run.
        other: The same.
    """
    return float(((one[:, None] > other).mean() + (one[:, None] >= other).mean()) / 2)


def holm(p: Sequence[float]) -> list[float]:
    """The p-values of several comparisons after Holm's correction (Scand. J. Statist. 6, 1979).

    nan stays, and is not counted.
    """
    known = sorted((place for place in range(len(p)) if not np.isnan(p[place])), key=lambda place: p[place])
    corrected, largest = [float("nan")] * len(p), 0.0
    for rank, place in enumerate(known):
        largest = max(largest, min(1.0, p[place] * (len(known) - rank)))
        corrected[place] = largest
    return corrected


def _parts(samples: Sequence[Floats]) -> tuple[Part, ...]:
    if min(map(len, samples)) < 2:
        return ()
    return tuple(Part(variance=float(each.var(ddof=1)) / len(each), degrees=len(each) - 1) for each in samples)


def _weights(random: np.random.Generator, count: int) -> Floats:
    """How often each of `count` is drawn in a resample, by the number of draws, [DRAWS, count]."""
    return random.multinomial(count, np.full(count, 1 / count), size=DRAWS) / count


def _detectable(error: float, degrees: float, level: float) -> float:
    if not error > 0:
        return float("nan")
    special = _special()
    limit = float(special.stdtrit(degrees, 1 - level / 2))

    def power(size: float) -> float:
        # Where the noncentral t has no number, in the far tail, there is nothing to count.
        below, missed = np.nan_to_num(special.nctdtr(degrees, size, np.asarray([-limit, limit])))
        return 1 - float(missed - below)

    low, high = 0.0, 1.0
    while power(high) < POWER:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return high * error


def _special() -> Any:
    try:
        return import_module("scipy.special")
    except ImportError as error:
        raise ImportError(f"bough compare: needs SciPy; {install('compare')}") from error
