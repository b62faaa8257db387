"""Means over seeds with their intervals, as the tables of the pages show them."""

import numpy as np

from bough.view import mean_interval


def interval(values: np.ndarray, *, sign: bool = False) -> str:
    """A mean over seeds, with Student's 95 % interval."""
    mean = float(values.mean())
    if len(values) < 2:
        return f"{mean:+.1f}" if sign else f"{mean:.1f}"
    low, high = mean_interval(values.tolist())
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})" if sign else f"{mean:.1f} ± {high - mean:.1f}"


def half_interval(values: np.ndarray) -> float:
    """Half of the interval; 0 for one seed."""
    return mean_interval(values.tolist())[1] - float(values.mean()) if len(values) > 1 else 0.0
