"""Confidence intervals: success rates, the difference of two rates on the same tasks, and means of numbers."""

import math
from collections.abc import Sequence
from statistics import NormalDist


def wilson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The score interval of a rate; it stays within [0, 1] and is not empty at 0 or `trials` successes.

    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927) 209-212; method 3 in
    Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998) 857-872.

    Returns:
        The ends of the interval, low and high; (0, 1) without trials.

    Raises:
        ValueError: when successes exceed trials, or the level is not between 0 and 1.
    """
    if not 0 <= successes <= trials or not 0 < level < 1:
        raise ValueError(
            f"wilson: got {successes} successes in {trials} trials at level {level}; need 0 <= successes <= trials and "
            "0 < level < 1"
        )
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2)
    rate = successes / trials
    middle = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(rate * (1 - rate) / trials + (z / (2 * trials)) ** 2) / (1 + z * z / trials)
    # Rounding must not put the rate outside of the interval.
    return max(0.0, min(rate, middle - half)), min(1.0, max(rate, middle + half))


def paired(before: Sequence[bool], after: Sequence[bool], level: float = 0.95) -> tuple[float, float]:
    """The interval of the difference of two rates, after minus before, measured on the same tasks.

    Tasks with the same result both times contain no information about the difference. An interval that uses the pairs
    is narrower than one for two separate samples. This one adds the two Wilson intervals at right angles,
    rotated by the correlation phi of the pairs: method 10 (square-and-add, phi with continuity correction) of Newcombe,
    "Improved confidence intervals for the difference between binomial proportions based on paired data", Statistics
    in Medicine 17 (1998) 2635-2650.

    Args:
        before: Success on each task.
        after: Success on each task, tasks in the same order.
        level: Confidence level.

    Returns:
        The ends of the interval, low and high, within [-1, 1]; (-1, 1) without tasks.

    Raises:
        ValueError: when the two have different lengths, or the level is not between 0 and 1.
    """
    trials = len(before)
    if len(after) != trials:
        raise ValueError(f"paired: got {trials} results before and {len(after)} after; need the same tasks")
    if trials == 0:
        return -1.0, 1.0
    was, now = sum(before) / trials, sum(after) / trials
    was_low, was_high = wilson(sum(before), trials, level)
    now_low, now_high = wilson(sum(after), trials, level)
    phi = _correlation(before, after)
    below = _turned_sum(now - now_low, was_high - was, phi)
    above = _turned_sum(now_high - now, was - was_low, phi)
    return max(-1.0, now - was - below), min(1.0, now - was + above)


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """The interval of a mean by Student's t; of paired differences, the interval of the mean change.

    Student, "The probable error of a mean", Biometrika 6 (1908) 1-25.

    Returns:
        The ends of the interval, low and high; (-inf, inf) for fewer than two values.

    Raises:
        ValueError: when the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"mean_interval: got level {level}; need 0 < level < 1")
    count = len(values)
    if count < 2:
        return -math.inf, math.inf
    mean = math.fsum(values) / count
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = student_quantile(0.5 + level / 2, count - 1) * deviation / math.sqrt(count)
    return mean - half, mean + half


def student_quantile(share: float, degrees: int) -> float:
    """The quantile of Student's t at `share`, 0.5 to below 1, by bisection."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_share(middle, degrees) < share else (low, middle)
    return math.tan(low) * math.sqrt(degrees)


def _student_share(angle: float, degrees: int) -> float:
    """The probability of a t of up to tan(angle) * sqrt(degrees): Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    odd, cosine = degrees % 2, math.cos(angle)
    term, total = (cosine, cosine if degrees > 1 else 0.0) if odd else (1.0, 1.0)
    for power in range(2 + odd, degrees - 1, 2):
        term *= cosine * cosine * (power - 1) / power
        total += term
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return 0.5 + inside / 2


def _turned_sum(one: float, other: float, phi: float) -> float:
    return math.sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))


def _correlation(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Phi of the table of pairs; a positive one is shrunk towards 0 by half a trial; 0 when a margin is empty."""
    trials, was, now = len(before), sum(before), sum(after)
    margins = was * (trials - was) * now * (trials - now)
    if margins == 0:
        return 0.0
    both = sum(one and other for one, other in zip(before, after, strict=True))
    neither = trials - was - now + both
    cross = both * neither - (was - both) * (now - both)
    corrected = max(cross - trials / 2, 0.0) if cross > 0 else cross
    return corrected / math.sqrt(margins)
