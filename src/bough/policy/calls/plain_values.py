"""Arguments that formats with tags write without quotes: a text as it is, any other value as JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from bough.policy.calls.objects import check_value, decode_json, write_json
from bough.policy.calls.python_values import python_value
from bough.tree import BadCall, Tool, ToolCall


def write_value(value: object, holds: Callable[[str], bool]) -> str:
    r"""The text of a value: that of a text where the same text is read, else JSON.

    Args:
        value: The value.
        holds: Whether a text can stand between the tags. In one that cannot, `<` is written as `\u003c`.
    """
    if isinstance(value, str) and holds(value) and read_value(value, None) == value:
        return value
    text = write_json(value)
    return text if holds(text) else text.replace("<", "\\u003c")


def read_value(text: str, schema: object) -> object:
    """The value of a text: JSON, or a list, object or constant of Python, else the text itself.

    Args:
        text: The text.
        schema: The schema of the argument. A value that must be a text is one, unless it is a text in JSON.

    Raises:
        ValueError: when the value is one that JSON cannot write, or is too large; see `check_value`.
    """
    value = _decoded(text)
    kind = cast("Mapping[str, object]", schema).get("type") if isinstance(schema, Mapping) else None
    return text if kind == "string" and not isinstance(value, str) else value


def read_arguments(name: str, given: Sequence[tuple[str, str]], tools: Sequence[Tool], text: str) -> ToolCall | BadCall:
    """The call of some names of arguments with their texts.

    Args:
        name: Name of the tool.
        given: The names and texts of its arguments.
        tools: The tools of the state.
        text: The text of the call, for a bad one.
    """
    schemas = [tool.schema.get("properties") for tool in tools if tool.name == name]
    properties = cast("Mapping[str, object]", schemas[0] if schemas and isinstance(schemas[0], Mapping) else {})
    if not name:
        return BadCall(text=text, problem="got a call without the name of a tool; need one")
    if len(dict(given)) < len(given):
        return BadCall(text=text, problem="got an argument twice; need each once")
    try:
        arguments = {each: read_value(value, properties.get(each)) for each, value in given}
        check_value(arguments)
    except (TypeError, ValueError) as error:
        return BadCall(text=text, problem=f"got an argument with {error}; need a value of JSON")
    return ToolCall(name=name, arguments=arguments)


def _decoded(text: str) -> object:
    stripped = text.strip()
    if not stripped:
        return text
    try:
        value, end = decode_json(stripped)
    except ValueError:
        value, end = None, -1
    if end == len(stripped):
        return value
    if stripped[0] in "[{" or stripped in ("None", "True", "False"):
        with suppress(TypeError, ValueError, SyntaxError, MemoryError, RecursionError):
            return json.loads(json.dumps(python_value(stripped)))
    return text
