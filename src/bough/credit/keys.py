"""Group keys: hashes of columns such as the task, the state, the turn."""

import numpy as np
from numpy.typing import NDArray

from bough.tree import Bools, Ints, PathView


def group_by(*columns: NDArray[np.integer] | Bools) -> Ints:
    """[n] int64: group number of each of n rows; rows are in one group when all columns are equal.

    Columns are mixed into one hash of 64 bits: two groups collide with a probability of about n^2 / 2^65.
    """
    return np.unique(mix(*columns), return_inverse=True)[1].astype(np.int64)


def mix(*columns: NDArray[np.integer] | Bools) -> NDArray[np.uint64]:
    """[n] uint64: a hash of the columns at each row (the finalizer of splitmix64, one round a column)."""
    hashed = np.zeros(columns[0].shape, dtype=np.uint64)
    for column in columns:
        hashed += column.astype(np.int64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(30)
        hashed *= np.uint64(0xBF58476D1CE4E5B9)
        hashed ^= hashed >> np.uint64(27)
        hashed *= np.uint64(0x94D049BB133111EB)
        hashed ^= hashed >> np.uint64(31)
    return hashed


def state_of(view: PathView) -> Ints:
    """[S] int64: group of the turns of one task in one state; an unknown state is its own group."""
    unknown = np.where(view.key == 0, np.arange(1, len(view.key) + 1), 0)
    return group_by(view.task[view.path], view.key, unknown)
