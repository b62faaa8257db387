"""Checks that fall while success or the reward rises: a sign that the policy learns something else than its task."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bough.view.alarm import Alarm
from bough.view.rising_rewards import RISES, Row, first_windows, rise, values_of

CHECK = "check/"
"""Part of the name of a check's mean, before the check."""

RISING = {"success": "train/success", "the reward": "reward/mean"}
"""What a check is compared with, by its name in an alarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FallingCheck:
    """A check whose mean fell over a window of steps in which success or the reward rose.

    Attributes:
        check: The check, with the prefix of its seat.
        step: The last step of the window.
        window: Number of steps.
        before: Its mean over the first half of the window.
        after: Over the second.
        rising: What rose: "success", or "the reward".
        rose: Its means over the two halves.
    """

    check: str
    step: int
    window: int
    before: float
    after: float
    rising: str
    rose: tuple[float, float]

    @property
    def alarm(self) -> Alarm:
        """As an alarm."""
        return Alarm(
            kind=f"check {self.check}",
            found=(
                f"the check {self.check!r} fell from {self.before:.3g} to {self.after:.3g} over the {self.window} "
                f"steps up to step {self.step}, and {self.rising} rose from {self.rose[0]:.3g} to {self.rose[1]:.3g}"
            ),
            meaning="The policy may have found a way to be paid without what the check measures",
            action="Look at the best-paid episodes (`bough view`, page Rewards) and change what pays for them",
        )

    def __str__(self) -> str:
        return str(self.alarm)


def checks_in(rows: Sequence[Row]) -> list[str]:
    """The metrics with the means of checks in training, such as "check/format", in order; of all seats."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if CHECK in name and not name.startswith("heldout/")]


def falling_checks(rows: Sequence[Row], window: int) -> list[FallingCheck]:
    """The checks that fell while success or the reward rose, each at the first window that shows it.

    Windows and significance are those of `rising_rewards`: both lines change by `RISES` standard errors.

    Args:
        rows: One a step, ascending, as in `metrics.jsonl`.
        window: Steps of a window, at least 4; 0 finds nothing.
    """
    return first_windows(rows, window, checks_in(rows), _falling)


def _falling(rows: Sequence[Row], name: str) -> FallingCheck | None:
    seat, _, check = name.partition(CHECK)
    values, half = values_of(rows, name), len(rows) // 2
    if not np.isfinite(values).all() or rise(values) > -RISES:
        return None
    for rising, metric in RISING.items():
        other = values_of(rows, f"{seat}{metric}")
        if np.isfinite(other).all() and rise(other) >= RISES:
            return FallingCheck(
                check=f"{seat}{check}",
                step=int(rows[-1]["step"]),
                window=len(rows),
                before=float(values[:half].mean()),
                after=float(values[half:].mean()),
                rising=rising,
                rose=(float(other[:half].mean()), float(other[half:].mean())),
            )
    return None
