"""Checks calls of tools against the tools' schemas."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from bough.tree import BadCall, Tool, ToolCall

DEEPEST = 100
"""Maximum depth of lists and objects in arguments."""

LONGEST_INT = 10_000
"""Maximum size of a whole number in arguments, in bits: about 3,000 digits. Python writes no number of 4,301 digits."""


def check_call(call: ToolCall | BadCall, tools: Sequence[Tool]) -> str:
    """Returns what is wrong with a call, for the model; "" when it is a call of one of the tools and fits its schema.

    Raises:
        ValueError: when the schema of the tool is no JSON schema.
    """
    if isinstance(call, BadCall):
        return call.problem
    tool = next((each for each in tools if each.name == call.name), None)
    if tool is None:
        names = ", ".join(each.name for each in tools) or "none: there are no tools now"
        return f"got the tool {call.name!r}; need one of: {names}"
    from jsonschema.exceptions import ValidationError, relevance

    validator = _validator(tool.name, json.dumps(tool.schema))
    if not _can_write(call.arguments):
        return f"got wrong arguments of {call.name}: they are nested too deeply, or a number has too many digits"
    try:
        errors: list[ValidationError] = [*validator.iter_errors(dict(call.arguments))]
        error = max(errors, key=relevance, default=None)
    except RecursionError:
        return f"got wrong arguments of {call.name}: they are nested too deeply"
    if error is None:
        return ""
    place = "".join(f"[{part!r}]" for part in error.absolute_path)
    return f"got wrong arguments of {call.name}: {'arguments' + place + ': ' if place else ''}{error.message}"


def _can_write(value: object) -> bool:
    """Whether a text can have the arguments: at most `DEEPEST` levels, and no number of too many digits."""
    level: list[object] = [value]
    for _ in range(DEEPEST):
        if any(isinstance(each, int) and each.bit_length() > LONGEST_INT for each in level):
            return False
        level = [inner for each in level for inner in _parts(each)]
        if not level:
            return True
    return False


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


@lru_cache(maxsize=1024)
def _validator(name: str, schema: str) -> Any:
    # The import takes a tenth of a second, which no run without tools pays.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    read = json.loads(schema)
    kind = validator_for(read, default=Draft202012Validator)
    try:
        kind.check_schema(read)
    except SchemaError as error:
        raise ValueError(f"tool {name!r}: got a schema that is no JSON schema: {error.message}") from error
    # With a registry of its own it follows no reference to another document.
    return kind(read, registry=cast("Any", Registry)())
