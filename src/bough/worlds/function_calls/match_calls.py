"""Compares calls of tools with reference calls by their syntax trees: functions, arguments and values."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from bough.tree import BadCall, ToolCall

Reference: TypeAlias = tuple[str, Mapping[str, Sequence[object]]]
"""A reference call: the function, and by argument the allowed values; "" among them allows to leave it out."""

SIGNS = re.compile(r"[\W_]+")


def match_calls(calls: Sequence[ToolCall | BadCall], references: Sequence[Reference]) -> bool:
    """Whether calls are the reference calls, in any order, by the rule of the Berkeley Function Calling Leaderboard.

    Each call must be one reference call and no two the same one. A call has the function's name and no other arguments;
    an argument is left out only where "" is allowed. For values see `same_value`.

    Examples:
        >>> match_calls([ToolCall(name="f", arguments={"a": 1})], [("f", {"a": [1, 2], "b": ["", 3]})])
        True

    Args:
        calls: The calls; one that could not be parsed matches nothing.
        references: The references.
    """
    if len(calls) != len(references):
        return False
    # By reference, the index of the call that has it: an assignment, made by paths that move earlier calls.
    taken: dict[int, int] = {}
    fits = [[place for place, each in enumerate(references) if _fits(call, each)] for call in calls]
    return all(_assign(call, fits, taken, set()) for call in range(len(calls)))


def same_value(given: object, allowed: object) -> bool:
    """Whether a value is an allowed one: of the same type and equal.

    A whole number counts as the decimal number of its value. Texts are compared in lower case, without punctuation and
    spaces, unless nothing else is left of one. Lists and objects are compared part by part.
    """
    kinds: tuple[type, type] = (type(given), type(allowed))
    if isinstance(given, str) and isinstance(allowed, str):
        one, other = (SIGNS.sub("", text).casefold() for text in (given, allowed))
        return one == other and (one != "" or given.strip() == allowed.strip())
    if isinstance(given, Mapping) and isinstance(allowed, Mapping):
        mine, theirs = cast("Mapping[object, object]", given), cast("Mapping[object, object]", allowed)
        return mine.keys() == theirs.keys() and all(same_value(mine[key], theirs[key]) for key in mine)
    if isinstance(given, list | tuple) and isinstance(allowed, list | tuple):
        parts, others = cast("Sequence[object]", given), cast("Sequence[object]", allowed)
        return len(parts) == len(others) and all(map(same_value, parts, others))
    return (kinds[0] is kinds[1] or kinds == (int, float)) and given == allowed


def _fits(call: ToolCall | BadCall, reference: Reference) -> bool:
    name, allowed = reference
    if isinstance(call, BadCall) or call.name != name or not call.arguments.keys() <= allowed.keys():
        return False
    return all(
        any(same_value(call.arguments[key], value) for value in values) if key in call.arguments else "" in values
        for key, values in allowed.items()
    )


def _assign(call: int, fits: Sequence[Sequence[int]], taken: dict[int, int], tried: set[int]) -> bool:
    """Give a call one of the references that it fits, moving calls that have one; False where that is impossible."""
    for place in fits[call]:
        if place not in tried:
            tried.add(place)
            if place not in taken or _assign(taken[place], fits, taken, tried):
                taken[place] = call
                return True
    return False
