"""Discounted sums over later turns or tokens: returns and generalised advantages."""

import numpy as np

from bough.tree import Floats, Ints


def sum_ahead(value: Floats, decay: Floats, start: Ints) -> Floats:
    """[n] float64: out[i] = value[i] + decay[i] * out[i + 1]; the last of each run is value[i] alone.

    Returns-to-go with `decay` the discount; generalised advantages with `value` the temporal-difference errors and
    `decay` discount times lambda; a decay of 0 restarts the sum; one of 1 passes it on.

    Args:
        value: [n], runs end to end.
        decay: [n].
        start: [runs + 1] int64; run k is start[k] : start[k + 1].
    """
    out = np.array(value, dtype=np.float64)
    length = np.diff(start)
    order = np.argsort(-length, kind="stable")
    last, length = start[1:][order] - 1, length[order]
    # All runs at once, from their ends; the longest first, so the runs still active are the first ones.
    longest = int(length.max(initial=0))
    running = np.cumsum(np.bincount(length, minlength=longest + 1)[::-1])[::-1]
    for back, runs in enumerate(running[2:].tolist(), start=1):
        here = last[:runs] - back
        out[here] += decay[here] * out[here + 1]
    return out


def ahead(value: Floats, start: Ints, end: Floats | float = 0.0) -> Floats:
    """[n] float64: the value after each element in its run, and `end`, [runs] or one number, after the last."""
    after = np.empty(len(value), dtype=np.float64)
    after[:-1] = value[1:]
    some = np.diff(start) > 0
    after[start[1:][some] - 1] = np.broadcast_to(end, some.shape)[some]
    return after


def gae(
    reward: Floats,
    value: Floats,
    start: Ints,
    *,
    discount: Floats | float,
    decay: Floats | float,
    end: Floats | float = 0.0,
) -> Floats:
    """[n] float64: generalised advantage estimates (arXiv 1506.02438).

        A[i] = reward[i] + discount[i] * value[i + 1] - value[i] + decay[i] * A[i + 1]

    Args:
        reward: [n].
        value: [n], of the state before each step.
        start: [runs + 1].
        discount: [n] or one number: factor of the next value.
        decay: [n] or one number: discount times lambda.
        end: [runs] or one number: the value after the end of each run.
    """
    error = reward + discount * ahead(value, start, end) - value
    return sum_ahead(error, np.broadcast_to(np.asarray(decay, dtype=np.float64), value.shape), start)
