"""An exponential curve from one number to another."""

from typing import Annotated

from bough.piece import Above, piece


@piece
class ExponentialSchedule:
    """From `start` to `end` along an exponential: start + (base^p - 1) / (base - 1) * (end - start) at progress p.

        start 0, end .5, base 4    p  0  .25  .5  .75  1    0  .069  .167  .305  .5

    Attributes:
        start: The number at the first step.
        end: The number at the end.
        base: Above 1 the number changes late, below 1 early; not 1.
    """

    start: float
    end: float
    base: Annotated[float, Above(0)] = 4.0

    def __post_init__(self) -> None:
        if self.base == 1:
            raise ValueError("ExponentialSchedule.base: got 1; need a number that is not 1, or a LinearSchedule")

    def at_progress(self, progress: float) -> float:
        """See `ValueSchedule`."""
        return self.start + (self.base**progress - 1) / (self.base - 1) * (self.end - self.start)
