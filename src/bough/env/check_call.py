"""Checks calls of tools against the tools' schemas."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import cast

from bough.env.json_schema import problem_of, read_schema
from bough.launch import CallEnded, bounded_call
from bough.tree import BadCall, Tool, ToolCall
from bough.usercode.origin import shorten

PROBLEM = "bough.env.json_schema:problem_of"
"""The check of arguments by a schema, as a child process imports it."""

CHECK_S = 1.0
"""Maximum seconds of a check that may take long, by a pattern for instance."""

DEEPEST = 100
"""Maximum depth of lists and objects in arguments."""

LONGEST_INT = 10_000
"""Maximum size of a whole number in arguments, in bits: about 3,000 digits. Python writes no number of 4,301 digits."""


def check_call(call: ToolCall | BadCall, tools: Sequence[Tool]) -> str:
    """Returns what is wrong with a call, for the model; "" when it is a call of one of the tools and fits its schema.

    Raises:
        ValueError: when the schema of the tool is wrong, see `check_tools`.
    """
    if isinstance(call, BadCall):
        return call.problem
    tool = next((each for each in tools if each.name == call.name), None)
    if tool is None:
        names = shorten(", ".join(each.name for each in tools), 400) or "none: there are no tools now"
        return f"got the tool {shorten(call.name, 100)!r}; need one of: {names}"
    text, needs_deadline = _checked(tool)
    if problem := _unwritable(call.arguments):
        return f"got wrong arguments of {call.name}: {problem}"
    try:
        problem = (
            bounded_call(PROBLEM, text, dict(call.arguments), seconds=CHECK_S)
            if needs_deadline
            else problem_of(text, call.arguments)
        )
    except CallEnded as ended:
        problem = f"the check by the tool's schema has no end: {ended}"
    return f"got wrong arguments of {call.name}: {problem}" if problem else ""


def check_tools(tools: Iterable[Tool]) -> None:
    """Checks the schemas of tools before any call.

    Raises:
        ValueError: when the schema of a tool is no JSON schema of an object, has a pattern that Python does not know,
            or a reference that leads nowhere or back to itself.
    """
    for tool in tools:
        _checked(tool)


def _checked(tool: Tool) -> tuple[str, bool]:
    """The schema of a tool as text, and whether a check by it needs a deadline."""
    try:
        text = json.dumps(tool.schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"tool {tool.name!r}: got a schema that is no JSON: {error}") from error
    return text, _needs_deadline(tool.name, text)


@lru_cache(maxsize=1024)
def _needs_deadline(name: str, text: str) -> bool:
    try:
        return read_schema(text).needs_deadline
    except (ValueError, RecursionError, OverflowError) as error:
        raise ValueError(f"tool {name!r}: {error}") from error


def _unwritable(value: object) -> str:
    """Why no text can have the arguments; "" when one can: at most `DEEPEST` levels, and no number of many digits."""
    level: list[object] = [value]
    for _ in range(DEEPEST):
        if any(isinstance(each, int) and each.bit_length() > LONGEST_INT for each in level):
            return "a number has too many digits"
        level = [inner for each in level for inner in _parts(each)]
        if not level:
            return ""
    return "they are nested too deeply"


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
