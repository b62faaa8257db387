"""The result of an agent program: reward and success, from a report, a function or an exit status."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

RewardFunction: TypeAlias = Callable[[Mapping[str, object], object], object]
"""Returns the reward of a task and a result: a number, a bool, or an object with "reward" or "success"."""

FORM = 'a number, true or false, or an object with "reward" or "success"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A result with its reward.

    Attributes:
        reward: The reward of the episode.
        success: Whether the task is solved.
    """

    reward: float
    success: bool


def read_result(value: object) -> Result | None:
    """The reward of a result; None for a value without one.

    A number is the reward, and a success from 1 on. A bool is a success, with reward 1. An object has "reward",
    "success" or both; the one that is missing follows from the other.
    """
    if isinstance(value, Mapping):
        row = cast("Mapping[str, object]", value)
        success = row.get("success")
        number = read_result(row.get("reward", success))
        if number is None or not (success is None or isinstance(success, bool)):
            return None
        return number if success is None else Result(reward=number.reward, success=success)
    if isinstance(value, int | float) and math.isfinite(value):
        return Result(reward=float(value), success=value >= 1)
    return None


def last_line(out: str) -> object:
    """The JSON in the last line of an output; the whole output where the line is none."""
    lines = out.strip().splitlines()
    try:
        return json.loads(lines[-1]) if lines else ""
    except ValueError:
        return out
