"""A half cosine from one number to another."""

import math

from bough.piece import piece


@piece
class CosineSchedule:
    """From `start` to `end` along a half cosine: slow at both ends.

        start 1, end 0    p  0  .25  .5  1    1  .854  .5  0

    Attributes:
        start: The number at the first step.
        end: The number at the end.
    """

    start: float
    end: float

    def at_progress(self, progress: float) -> float:
        """See `ValueSchedule`."""
        return self.end + (self.start - self.end) * (0.5 * (1.0 + math.cos(math.pi * progress)))
