"""Reward channels that rise while success does not: a sign of reward hacking."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bough.view.alarm import Alarm

Value: TypeAlias = int | float | str
Row: TypeAlias = Mapping[str, Value]
Found = TypeVar("Found")

MEAN = "reward/"
"""Part of the name of a channel's mean, before the channel."""
RISES = 3.0
"""Standard errors of its trend by which a number rises."""
STAYS = 1.0
"""Standard errors up to which a number does not rise."""
TASK_CHANNELS = ("env", "success")
"""The channels that define the task: the environment's own reward, and the reward of success."""
SOLVED = 0.95
"""Success above which nothing is left to rise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RisingReward:
    """A channel whose mean rose over a window of steps in which success did not.

    Attributes:
        channel: The channel, with the prefix of its seat.
        step: The last step of the window.
        window: Number of steps.
        before: Its mean over the first half of the window.
        after: Over the second.
        success: The success of the second half.
    """

    channel: str
    step: int
    window: int
    before: float
    after: float
    success: float

    @property
    def alarm(self) -> Alarm:
        """As an alarm."""
        return Alarm(
            kind=f"reward {self.channel}",
            found=(
                f"the reward {self.channel!r} rose from {self.before:.3g} to {self.after:.3g} over the {self.window} "
                f"steps up to step {self.step}, and success stayed at {self.success:.1%}"
            ),
            meaning=(
                "The policy may learn the reward in place of the task; reward_pair_accuracy is the share of pairs in "
                "which a success is paid more than a failure"
            ),
            action="Lower its weight or remove it, and look at the trees",
        )

    def __str__(self) -> str:
        return str(self.alarm)


def channels(rows: Sequence[Row]) -> list[str]:
    """The metrics with the means of reward channels, such as "reward/format", in order; of all seats."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if MEAN in name and not name.endswith("reward/mean")]


def of_channel(name: str, kind: str, mean: str = MEAN) -> str:
    """Another metric of the channel with this mean: `reward_std/NAME` for the kind "std"."""
    return name.replace(mean, f"{mean[:-1]}_{kind}/", 1)


def rising_rewards(rows: Sequence[Row], window: int) -> list[RisingReward]:
    """The channels that rose without success, each at the first window that shows it.

    The rows of reinforcement learning are cut into windows, one after the other. A number rises if the line
    fitted to it rises by `RISES` standard errors. Success does not rise if its line rises by `STAYS` at most and it is
    below `SOLVED`. The environment's own reward and the reward of success define the task: they are left out.

    Args:
        rows: One a step, ascending, as in `metrics.jsonl`.
        window: Steps of a window, at least 4; 0 finds nothing.
    """
    names = [name for name in channels(rows) if name.partition(MEAN)[2] not in TASK_CHANNELS]
    return first_windows(rows, window, names, _rising)


def first_windows(
    rows: Sequence[Row], window: int, names: Sequence[str], find: Callable[[Sequence[Row], str], Found | None]
) -> list[Found]:
    """What a function finds about each of some metrics, in the first window of steps of reinforcement that shows it.

    Args:
        rows: One a step, ascending.
        window: Steps of a window, one after the other; 0 finds nothing.
        names: The metrics.
        find: The rows of a window and a metric to what they show; None for nothing.
    """
    if window <= 0:
        return []
    learned = [row for row in rows if row.get("phase") == "rl" and any(MEAN in name for name in row)]
    found: dict[str, Found] = {}
    for end in range(window, len(learned) + 1, window):
        part = learned[end - window : end]
        for name in names:
            if name not in found and (one := find(part, name)) is not None:
                found[name] = one
    return list(found.values())


def _rising(rows: Sequence[Row], name: str) -> RisingReward | None:
    seat, _, channel = name.partition(MEAN)
    pay, success = values_of(rows, name), values_of(rows, f"{seat}train/success")
    if not (np.isfinite(pay).all() and np.isfinite(success).all()):
        return None
    half = len(rows) // 2
    after = float(success[half:].mean())
    if rise(pay) < RISES or rise(success) > STAYS or after >= SOLVED:
        return None
    return RisingReward(
        channel=f"{seat}{channel}",
        step=int(rows[-1]["step"]),
        window=len(rows),
        before=float(pay[:half].mean()),
        after=float(pay[half:].mean()),
        success=after,
    )


def values_of(rows: Sequence[Row], name: str) -> NDArray[np.float64]:
    """[window] the values of a metric; nan where it is missing."""
    return np.asarray([float(row.get(name, math.nan)) for row in rows])


def rise(values: NDArray[np.float64]) -> float:
    """The rise a step of the line fitted to values, in standard errors; inf for a rising line without a residual."""
    place = np.arange(len(values)) - (len(values) - 1) / 2
    square = float(place @ place)
    slope = float(place @ values) / square
    if abs(slope) * len(values) <= 1e-12 * max(1.0, float(np.abs(values).max())):
        return 0.0
    residual = values - values.mean() - slope * place
    error = math.sqrt(float(residual @ residual) / (len(values) - 2) / square)
    return slope / error if error > 0 else math.copysign(math.inf, slope)
