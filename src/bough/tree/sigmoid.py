"""The logistic function, without overflow."""

import numpy as np

from bough.tree.tree import Floats


def sigmoid(score: Floats) -> Floats:
    """[n] float64: 1 / (1 + exp(-score))."""
    return 0.5 * (1 + np.tanh(0.5 * np.asarray(score, dtype=np.float64)))
