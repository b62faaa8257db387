"""Confidence intervals for success rates, and for the difference of two rates on the same tasks."""

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
