"""A straight line from one number to another."""

from bough.piece import piece


@piece
class LinearSchedule:
    """From `start` to `end` at an even pace: start * (1 - p) + end * p at progress p.

        start 1, end 0    p  0  .25  .5  1    1  .75  .5  0

    Try: `bough train grpo --on frozenlake sampling.temperature='LinearSchedule(start=1.2,end=0.8)'`

    Attributes:
        start: The number at the first step.
        end: The number at the end.
    """

    start: float
    end: float

    def at_progress(self, progress: float) -> float:
        """See `ValueSchedule`."""
        return self.start * (1.0 - progress) + self.end * progress
