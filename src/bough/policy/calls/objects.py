"""Reads one call from a JSON value."""

import json
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from bough.tree import BadCall, ToolCall

THOUGHT = "</think>"

Read = TypeVar("Read")


def split_thinking(text: str) -> tuple[str, str]:
    """Splits a text after its thinking; the second part is empty where the thinking has no end."""
    begin, end, rest = text.rpartition(THOUGHT)
    if not end:
        return (text, "") if text.lstrip().startswith("<think>") else ("", text)
    return begin + end, rest


def decode_json(text: str, begin: int = 0) -> tuple[object, int]:
    """Decodes the JSON value at a position; returns it with the position after it.

    Raises:
        ValueError: when there is none, or it has numbers or texts that JSON cannot write; has the reason.
    """
    try:
        value, end = json.JSONDecoder().raw_decode(text, begin)
        return _plain(value), end
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg} at character {error.pos - begin}") from error
    except RecursionError as error:
        raise ValueError("JSON with too many levels") from error


def _plain(value: object) -> object:
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return value


def json_call(
    value: object, text: str, *, key: str, call_id: Callable[[Mapping[str, object]], str]
) -> ToolCall | BadCall:
    """Returns the call in a decoded JSON value.

    Args:
        value: The value.
        text: Its text, for a bad call.
        key: The member with the arguments.
        call_id: Returns the id of the call.
    """
    need = f'need {{"name": "NAME", "{key}": {{...}}}}'
    if not isinstance(value, dict):
        return BadCall(text=text, problem=f"got a call that is no JSON object; {need}")
    call = cast("Mapping[str, object]", value)
    name, arguments = call.get("name"), call.get(key, {})
    if not isinstance(name, str) or not name:
        return BadCall(text=text, problem=f"got a call without the name of a tool; {need}")
    if not isinstance(arguments, dict):
        return BadCall(text=text, problem=f'got "{key}" that is no JSON object; {need}')
    return ToolCall(name=name, arguments=cast("Mapping[str, object]", arguments), call_id=call_id(call))


def no_id(call: Mapping[str, object]) -> str:
    """The id of a call in a format without ids."""
    del call
    return ""
