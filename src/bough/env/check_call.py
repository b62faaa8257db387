"""Checks calls of tools against the tools' schemas."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from bough.tree import BadCall, Tool, ToolCall


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

    errors: list[ValidationError] = [*_validator(tool.name, json.dumps(tool.schema)).iter_errors(dict(call.arguments))]
    error = max(errors, key=relevance, default=None)
    if error is None:
        return ""
    place = "".join(f"[{part!r}]" for part in error.absolute_path)
    return f"got wrong arguments of {call.name}: {'arguments' + place + ': ' if place else ''}{error.message}"


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
