"""The result of an agent program: reward and success, from a report, a function or an exit status."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from bough.explore.process import KEEP_BYTES
from bough.tree.reward_range import MOST_REWARD

OBJECT = re.compile(r"""^\{.*["'](?:reward|success)["']\s*:.*\}\Z""", re.DOTALL | re.MULTILINE)
"""An object at the end of a text that names a result."""

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
    if isinstance(value, int | float) and abs(value) <= MOST_REWARD:
        return Result(reward=float(value), success=value >= 1)
    return None


def json_at_end(out: str) -> object:
    """The JSON in the last line of an output, or an object in its last lines; the whole output where there is none.

    An object in several lines begins at the beginning of a line.
    """
    lines = out.strip().split("\n")
    begins = [len(lines) - 1, *(at for at in reversed(range(len(lines) - 1)) if lines[at].startswith("{"))]
    for begin in begins if out.strip() else []:
        try:
            return json.loads("\n".join(lines[begin:]))
        except (ValueError, RecursionError):
            continue
    return out


def may_end_with_result(out: str) -> bool:
    """Whether an output without JSON at its end may end with a result.

    It ends with an object that names one, such as a Python dict, or with a line that is longer than what is kept.
    """
    whole = out.strip()
    return OBJECT.search(whole) is not None or ("\n" not in whole and len(out.encode()) >= KEEP_BYTES)
