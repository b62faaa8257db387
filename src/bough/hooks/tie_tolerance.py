"""The difference up to which two returns are tied."""

import numpy as np

from bough.tree import Floats

TIE_TOLERANCE = 1e-9
"""Returns of size up to 1 that differ by less are tied: sums of the same rewards, rounded in another order."""


def tie_tolerance(returns: Floats) -> float:
    """The largest difference of tied returns [P]: `TIE_TOLERANCE`, times the largest size where it is above 1."""
    return TIE_TOLERANCE * max(1.0, float(np.abs(returns).max(initial=0.0)))
