"""The number that a user's reward function returns."""

import math
from collections.abc import Callable
from contextlib import suppress
from numbers import Real
from typing import Any, cast

from bough.env.env import EnvFault
from bough.usercode.origin import definition, shorten

MOST_SHOWN = 100
"""Characters of a result in a message."""


def reward_number(value: object, function: Callable[..., Any], what: str = "") -> bool | float:
    """A result as a bool or a float; NumPy scalars and tensors of one element are numbers too.

    Args:
        value: What the function returned for one answer.
        function: The function, for the message.
        what: What the value is, before "the reward function NAME"; "" for its result.

    Raises:
        EnvFault: when it is no finite number; names the function with its file and line.
    """
    plain = cast("Any", value).item() if getattr(value, "shape", None) in ((), (1,)) else value
    if isinstance(plain, bool):
        return plain
    # An integer may be larger than any float.
    with suppress(OverflowError):
        if isinstance(plain, Real) and math.isfinite(plain):
            return float(plain)
    raise wrong_result(value, function, "a finite number, or True or False", what)


def wrong_result(value: object, function: Callable[..., Any], need: str, what: str = "") -> EnvFault:
    """The fault of a reward function that returns something else than it should; `what` as in `reward_number`."""
    return EnvFault(
        f"got {shorten(repr(value), MOST_SHOWN)} {what or 'from'} the reward function {function_name(function)} "
        f"({definition(function)}); need {need}"
    )


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function, or of the class of a callable object."""
    return getattr(function, "__name__", type(function).__name__)
