"""Reads one call from a JSON value."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from bough.tree import BadCall, ToolCall

MAX_LEVELS = 64
"""Maximum depth of nested arguments: deeper ones fail in validators and files, which recurse."""

MAX_DIGITS = 300
"""Maximum digits of an integer: it then is less than the largest float."""

KEYS = ("arguments", "parameters")
"""Members with the arguments of a call; each family writes one and is understood with the other, too."""


def decode_json(text: str, begin: int = 0) -> tuple[object, int]:
    """Decodes the JSON value at a position; returns it with the position after it.

    Raises:
        ValueError: when there is none, it has a key twice, or `check_value` refuses it; has the reason.
    """
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer).raw_decode(text, begin)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg} at character {error.pos - begin}") from error
    except RecursionError as error:
        raise ValueError("JSON with too many levels") from error
    check_value(value)
    return value, end


def write_json(value: object) -> str:
    """The JSON of a value, without escapes of letters."""
    return json.dumps(value, ensure_ascii=False)


def check_value(value: object) -> None:
    """Checks that a value is one that JSON can write, and that later code can use.

    Raises:
        ValueError: when it has numbers or texts that JSON cannot write, too many levels or too large integers.
        TypeError: when it has a type that JSON does not have.
    """
    level, values = 0, [value]
    while values:
        level += 1
        if level > MAX_LEVELS:
            raise ValueError(f"a value with more than {MAX_LEVELS} levels")
        if any(isinstance(each, int) and abs(each) >= 10**MAX_DIGITS for each in values):
            raise ValueError(f"an integer with more than {MAX_DIGITS} digits")
        values = [inner for each in values for inner in _inside(each)]
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _inside(value: object) -> Sequence[object]:
    if isinstance(value, dict):
        return [*cast("dict[object, object]", value).values()]
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _integer(text: str) -> int:
    """An integer in JSON; Python's own limit of digits is larger."""
    return int(text) if len(text) <= MAX_DIGITS else 10**MAX_DIGITS


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The pairs of a JSON object, whose keys must be different."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"the key {json.dumps(twice)} twice")
    return dict(pairs)


def json_call(
    value: object, text: str, *, key: str, call_id: Callable[[Mapping[str, object]], str]
) -> ToolCall | BadCall:
    """Returns the call in a decoded JSON value.

    Args:
        value: The value.
        text: Its text, for a bad call.
        key: The member in which the family writes the arguments.
        call_id: Returns the id of the call.
    """
    need = f'need {{"name": "NAME", "{key}": {{...}}}}'
    if not isinstance(value, dict):
        return BadCall(text=text, problem=f"got a call that is no JSON object; {need}")
    call = cast("Mapping[str, object]", value)
    name, given = call.get("name"), [each for each in KEYS if each in call]
    if not isinstance(name, str) or not name:
        return BadCall(text=text, problem=f"got a call without the name of a tool; {need}")
    if len(given) > 1 or (not given and not call.keys() <= {"name", "id", "type"}):
        return BadCall(text=text, problem=f"got a call with {', '.join(call)}; {need}")
    arguments: object = call[given[0]] if given else {}
    if not isinstance(arguments, dict):
        return BadCall(text=text, problem=f'got "{given[0]}" that is no JSON object; {need}')
    return ToolCall(name=name, arguments=cast("Mapping[str, object]", arguments), call_id=call_id(call))


def no_id(call: Mapping[str, object]) -> str:
    """The id of a call in a format without ids."""
    del call
    return ""
