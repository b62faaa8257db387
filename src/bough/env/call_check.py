"""Checks of calls against the JSON schemas of tools."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bough.tree import BadCall, Tool, ToolCall
from bough.usercode.origin import shorten

MOST_PROBLEMS = 3
MOST_CHARACTERS = 200
"""Maximum number of problems in one message, and of the characters of each."""


class CallCheck:
    """Finds what is wrong with a call.

    References to other documents in a schema are not followed.

    Args:
        tools: The tools.

    Raises:
        ValueError: when two tools have one name, or a schema is no JSON schema.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        names = [tool.name for tool in tools]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"tools: got two tools with the name {twice[0]!r}; need different names")
        self._validators = {tool.name: _validator(tool) for tool in tools}

    def problem(self, call: ToolCall | BadCall) -> str:
        """What is wrong with a call, for the model; "" when it fits the schema of its tool."""
        if isinstance(call, BadCall):
            return call.problem
        if call.name not in self._validators:
            return f"there is no tool {call.name!r}; the tools are {', '.join(self._validators)}"
        errors = [*self._validators[call.name].iter_errors(dict(call.arguments))]
        texts = [_text(error) for error in errors[:MOST_PROBLEMS]]
        more = len(errors) - len(texts)
        texts += [f"{more} more problems"] if more else []
        return f"{call.name}: {'; '.join(texts)}" if texts else ""


def _text(error: Any) -> str:
    """An error of jsonschema with its place: "goods[1]: 2 is not of type 'string'"."""
    place = error.json_path.removeprefix("$").lstrip(".")
    return (f"{place}: " if place else "") + shorten(error.message, MOST_CHARACTERS)


def _validator(tool: Tool) -> Any:
    # The import takes a tenth of a second, which no run without tools pays.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    schema: Mapping[str, object] = dict(tool.schema)
    kind = cast("Any", validator_for(schema, default=Draft202012Validator))
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"tool {tool.name}: got a schema that is no JSON schema: {error.message}") from error
    return kind(schema, registry=cast("Any", Registry)())
