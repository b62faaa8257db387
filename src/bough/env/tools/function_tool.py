"""Tools from Python functions: schemas from type hints, descriptions from docstrings."""

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

from bough.env.env import EnvFault
from bough.env.reward_number import function_name
from bough.tree import Tool, copied
from bough.usercode.loop import synchronous
from bough.usercode.origin import definition

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


STATELESS = "is_stateless_tool"
"""The attribute of functions that `stateless` marks."""

VALUES = ("default", "const", "enum", "examples")
"""Keys of a schema that hold values, not schemas."""


Function = TypeVar("Function", bound=Callable[..., object])


class ToolError(Exception):
    """A tool raises it to refuse a call. The model reads its text, and the episode continues."""


def stateless(function: Function) -> Function:
    """Marks a tool whose first parameter is no state, also in an environment with a state."""
    vars(function)[STATELESS] = True
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """A tool that calls a Python function.

    Attributes:
        tool: Its name, description and schema.
        function: The function.
        takes_state: Whether its first parameter receives the state of the episode.
        adapters: By argument, converts JSON values to the type of the hint.
    """

    tool: Tool
    function: Callable[..., object]
    takes_state: bool
    adapters: Mapping[str, TypeAdapter[Any]]

    def convert(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Converts arguments that fit the schema to the types of the hints; the values are copies.

        Raises:
            ToolError: when a type refuses its value; a schema does not hold every rule of a type.
        """
        converted: dict[str, object] = {}
        for name, value in arguments.items():
            try:
                converted[name] = self.adapters[name].validate_python(copied(value))
            except ValidationError as error:
                raise ToolError(f"{self.tool.name}: {name}: {error.errors()[0]['msg']}") from error
        return converted

    def __call__(self, state: object, arguments: Mapping[str, object]) -> str:
        """Calls the function with converted arguments, and returns its result as text.

        A string is returned as it is, None as "ok", any other value as JSON; values of NumPy are numbers and lists.

        Raises:
            EnvFault: when JSON cannot write the result.
            Exception: the function's own.
        """
        result = self.function(state, **arguments) if self.takes_state else self.function(**arguments)
        if isinstance(result, str):
            return result
        try:
            return "ok" if result is None else json.dumps(_json_value(result), ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise EnvFault(
                f"tool {self.tool.name} ({definition(self.function)}): got a result of type {type(result).__name__} "
                f"that JSON cannot write ({error}); need text, numbers, lists or mappings"
            ) from error


def function_tool(function: Callable[..., object], *, takes_state: bool) -> FunctionTool:
    """Returns the tool of a function.

    The description is the docstring's first paragraph; those of the arguments are in its section "Args:".

    Args:
        function: Its parameters have type hints that pydantic knows. An async one is awaited at each call.
        takes_state: Whether the first parameter receives the state; it is then no part of the schema. A function that
            `stateless` marks never receives it.

    Raises:
        ValueError: when a parameter has no type hint, or the function cannot be a tool.
    """
    name = function_name(function)
    if not hasattr(function, "__name__"):
        raise ValueError(f"tool {name}: got an object without a name; need a function, written by `def`")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ValueError(f"tool {name}: got a generator; need a function that returns, such as a list")
    takes_state = takes_state and not getattr(function, STATELESS, False)
    parameters = list(inspect.signature(function).parameters.values())
    if takes_state and not parameters:
        raise ValueError(f"tool {name}: got no parameters; need the state as the first one, or tools_env without state")
    parameters = parameters[takes_state:]
    hints = get_type_hints(function, include_extras=True)
    for each in parameters:
        if each.kind not in NAMED:
            raise ValueError(f"tool {name}: got the parameter {each}; need parameters that are passed by name")
        if each.name not in hints:
            raise ValueError(f"tool {name}: got the parameter {each.name} without a type hint; need one, such as `int`")
    adapters = {each.name: _adapter(name, each.name, hints[each.name]) for each in parameters}
    description, about = describe(inspect.getdoc(function) or "")
    defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
    schema = _schema(adapters, defaults, about)
    tool = Tool(name=name, description=description, schema=schema)
    return FunctionTool(tool=tool, function=synchronous(function), takes_state=takes_state, adapters=adapters)


def _json_value(result: object) -> object:
    """The result as JSON data. Pydantic would empty an iterator, and take it for a list."""
    if isinstance(result, Iterator):
        raise TypeError("it is an iterator")
    return to_jsonable_python(result, fallback=_python_value)


def _python_value(value: Any) -> object:
    """The value of a NumPy scalar or array in Python."""
    if isinstance(value, np.generic | np.ndarray):
        return cast("object", value.tolist())
    raise TypeError(f"no rule for {type(value).__name__}")


def describe(doc: str) -> tuple[str, dict[str, str]]:
    """The first paragraph of a docstring, and the descriptions in its section "Args:" by argument."""
    paragraph, _, rest = doc.strip().partition("\n\n")
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)*)", f"{paragraph}\n\n{rest}", re.MULTILINE)
    entries = inspect.cleandoc(section[1]) if section else ""
    found = re.findall(r"^(\w+)(?: *\([^)\n]*\))?:[ \t]*(.*(?:\n[ \t]+.*)*)", entries, re.MULTILINE)
    first = re.split(r"^Args:$", paragraph, flags=re.MULTILINE)[0]
    return " ".join(first.split()), {name: " ".join(text.split()) for name, text in found}


def _adapter(tool: str, parameter: str, hint: object) -> TypeAdapter[Any]:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", hint))
        adapter.json_schema()
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"tool {tool}: got the type hint {hint!r} of {parameter}, which has no JSON schema ({reason}); need a type "
            "such as str, int, list[str], Literal, Enum, or a dataclass"
        ) from error
    return adapter


def _schema(
    adapters: Mapping[str, TypeAdapter[Any]], defaults: Mapping[str, object], about: Mapping[str, str]
) -> dict[str, object]:
    """The schema of an object with one property for each argument."""
    found, shared = TypeAdapter.json_schemas([(name, "validation", adapter) for name, adapter in adapters.items()])
    properties: dict[str, object] = {}
    for name in adapters:
        schema = cast("dict[str, object]", _without_titles(found[name, "validation"]))
        if name in about:
            schema = {**schema, "description": schema.get("description", about[name])}
        if name in defaults:
            schema["default"] = to_jsonable_python(defaults[name])
        properties[name] = schema
    required = [name for name in adapters if name not in defaults]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    definitions = _without_titles(shared.get("$defs"), names=True)
    return schema | ({"$defs": definitions} if definitions else {})


def _without_titles(schema: object, *, names: bool = False) -> object:
    """A schema without the titles that pydantic adds.

    Args:
        schema: The schema, or a part of it.
        names: Whether the keys are names of properties or definitions.
    """
    if isinstance(schema, list):
        return [_without_titles(each) for each in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    items = cast("dict[str, object]", schema).items()
    return {
        key: value
        if not names and key in VALUES
        else _without_titles(value, names=not names and key in ("properties", "$defs"))
        for key, value in items
        if names or key != "title"
    }
