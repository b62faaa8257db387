"""Whether returns are equal, rounding aside."""

import numpy as np

from bough.tree import Floats

EVEN = 1e-9
"""Returns up to size 1 with a smaller difference are the same sum in another order."""


def rounding(returns: Floats) -> float:
    """The largest difference of returns [P] that are equal: `EVEN`, times the largest size where it is above 1."""
    return EVEN * max(1.0, float(np.abs(returns).max(initial=0.0)))
