"""The documented functions of BFCL's API classes, as tools with JSON schemas."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from bough.tree import Tool
from bough.usercode.json_file import read_objects
from bough.worlds.bfcl.package import BACKEND, data_file, module

CLASSES = (
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "TwitterAPI",
    "VehicleControlAPI",
)
"""The API classes of the multi-turn episodes."""

TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""Types of BFCL's docs that JSON schema names differently. "any" sets no type."""

MARK = "Tool description: "
"""Separates the description of the class, which each function repeats, from that of the function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiFunction:
    """A function of a class.

    Attributes:
        owner: Name of the class.
        tool: Name, description and schema.
        short: The same tool without the description of its class.
        parameters: Names of the parameters, in the order of the Python signature.
        defaults: Lists and objects among the defaults, which the class would share between episodes.
    """

    owner: str
    tool: Tool
    short: Tool
    parameters: tuple[str, ...]
    defaults: Mapping[str, object]


def api_class(name: str) -> Any:
    """Returns a class of the package.

    Raises:
        ImportError: when bfcl-eval or mpmath is not installed.
    """
    return getattr(module(module(BACKEND).CLASS_FILE_PATH_MAPPING[name]), name)


@lru_cache(maxsize=1)
def functions() -> Mapping[str, ApiFunction]:
    """The functions of all classes by name; no two classes share a name.

    Raises:
        ImportError: when bfcl-eval or mpmath is not installed.
    """
    found: dict[str, ApiFunction] = {}
    for owner in CLASSES:
        path = data_file(f"multi_turn_func_doc/{module(BACKEND).MULTI_TURN_FUNC_DOC_FILE_MAPPING[owner]}")
        for _, doc in read_objects(path, "a function of BFCL"):
            parameters = [*inspect.signature(getattr(api_class(owner), doc["name"])).parameters.values()][1:]
            schema = json_schema(doc["parameters"])
            text = " ".join(doc["description"].split())
            found[doc["name"]] = ApiFunction(
                owner=owner,
                tool=Tool(name=doc["name"], description=text, schema=schema),
                short=Tool(name=doc["name"], description=text.rpartition(MARK)[2], schema=schema),
                parameters=tuple(each.name for each in parameters),
                defaults={each.name: each.default for each in parameters if _shared(each.default)},
            )
    return found


def json_schema(doc: Mapping[str, Any]) -> dict[str, object]:
    """A schema of BFCL's docs as JSON schema.

    Objects take no other properties. The default "None", which stands for an absent argument, is left out.

    Examples:
        >>> json_schema({"type": "dict", "properties": {"a": {"type": "float", "default": "None"}}, "required": []})
        {'type': 'object', 'properties': {'a': {'type': 'number'}}, 'required': [], 'additionalProperties': False}
    """
    schema: dict[str, object] = {}
    for key, value in doc.items():
        if key == "properties":
            schema[key] = {name: json_schema(each) for name, each in cast("dict[str, Any]", value).items()}
        elif key == "items":
            schema[key] = json_schema(value)
        elif key == "type":
            schema |= {} if value == "any" else {key: TYPES.get(value, value)}
        elif key == "description":
            schema[key] = " ".join(value.split())
        elif key != "default" or value != "None":
            schema[key] = value
    return schema | ({"additionalProperties": False} if "properties" in schema else {})


def _shared(default: object) -> bool:
    """Whether all calls of a function would share a default that they can change."""
    return isinstance(default, list | dict)
