"""Centring and scaling within groups, shared by most rules."""

from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from bough.tree import Floats, Ints, sum_at

Mean: TypeAlias = Literal["group", "leave_one_out", "batch", "none"]
Std: TypeAlias = Literal["group", "batch", "none"]
Guard: TypeAlias = Literal["added", "floor", "variance"]
"""The divisor that epsilon keeps above 0: std + epsilon, max(std, epsilon), or sqrt(variance + epsilon)."""

ROUNDING = 1e-12
"""Values with a smaller relative difference are the same sum in another order."""


def normalize(
    value: Floats,
    group: Ints,
    *,
    mean: Mean = "group",
    std: Std = "group",
    weight: Floats | None = None,
    ddof: int = 1,
    epsilon: float = 1e-6,
    guard: Guard = "added",
    singleton: Literal["zero", "raw"] = "zero",
) -> Floats:
    """[n] float64: (value - mean) / (std + epsilon), each over the group, the batch, or omitted.

    A value alone in its group, or in a tied group, gets exactly 0 when the mean or the standard deviation
    is of the group: there is no comparison.

    Args:
        value: [n].
        group: [n] int64, from 0: the group of each value.
        mean: The subtracted mean. "leave_one_out" is the mean of the other values of the group.
        std: The divisor.
        weight: [n], of each value in means and standard deviations: a token count makes them means over tokens.
        ddof: Subtracted from the sum of weights in the variance.
        epsilon: > 0, keeps the divisor above 0.
        guard: The form of the divisor, see `Guard`.
        singleton: "raw" gives a value alone in its group mean 0 and standard deviation 1, as released code often does;
            with std="batch", the standard deviation of the batch, 1 for a batch of one.
    """
    groups = int(group.max(initial=-1)) + 1
    total = partial(sum_at, group, count=groups)
    members = np.bincount(group, minlength=groups)
    masses = members.astype(np.float64) if weight is None else total(weight)
    sums = total(value if weight is None else weight * value)
    difference = value - (sums / np.where(masses > 0, masses, 1.0))[group]
    square = difference**2
    alone, even = members < 2, total(square) <= ROUNDING**2 * total(value**2)
    match mean:
        case "group":
            result = difference
        case "leave_one_out":
            result = difference * (members / np.maximum(members - 1, 1))[group]
        case "batch":
            result = value - _mean(value, weight)
        case "none":
            result = value.copy()
    scale = np.ones(groups)
    if std == "group":
        squares = total(square if weight is None else weight * square)
        scale = _guarded(np.where(alone, 1.0, squares / np.maximum(masses - ddof, ddof or 1)), epsilon, guard)
    elif std == "batch":
        spread = _mean((value - _mean(value, weight)) ** 2, weight) * masses.sum() / max(masses.sum() - ddof, ddof or 1)
        scale = _guarded(np.full(groups, spread if len(value) > 1 else 1.0), epsilon, guard)
    result = result / scale[group]
    if mean in ("group", "leave_one_out") or std == "group":
        result[even[group] | alone[group]] = 0.0
        if singleton == "raw":
            result[alone[group]] = (value / scale[group])[alone[group]]
    return result


def mean_at(value: Floats, group: Ints) -> Floats:
    """[n] float64: the mean of `value` over the group of each; exactly 0 where it is 0 up to rounding."""
    total, size = sum_at(group, value, 0), sum_at(group, np.abs(value), 0)
    total[np.abs(total) <= ROUNDING * size] = 0.0
    return (total / np.maximum(np.bincount(group), 1))[group]


def _guarded(variance: Floats, epsilon: float, guard: Guard) -> Floats:
    """[groups] the divisors for these variances, above 0."""
    match guard:
        case "added":
            return np.sqrt(variance) + epsilon
        case "floor":
            return np.maximum(np.sqrt(variance), epsilon)
        case "variance":
            return np.sqrt(variance + epsilon)


def _mean(value: Floats, weight: Floats | None) -> float:
    if not len(value):
        return 0.0
    if weight is None:
        return float(value.mean())
    return float((weight * value).sum() / max(weight.sum(), np.finfo(np.float64).tiny))
