"""Calls and tools as people write them: `get(name="ann")`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bough.tree import BadCall, Tool, ToolCall


def call_line(call: ToolCall | BadCall) -> str:
    """A call with its arguments; the text of a malformed call."""
    if isinstance(call, BadCall):
        return call.text
    arguments = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items())
    return f"{call.name}({', '.join(arguments)})"


def tool_line(tool: Tool) -> str:
    """A tool with its arguments and their types, and the first line of its description."""
    properties = cast("Mapping[str, object]", tool.schema.get("properties", {}))
    required = cast("Sequence[str]", tool.schema.get("required", ()))
    shown = (f"{name}{'' if name in required else '?'}{_type(schema)}" for name, schema in properties.items())
    return f"{tool.name}({', '.join(shown)})  {' '.join(tool.description.strip().splitlines()[:1])}"


def _type(schema: object) -> str:
    """The type of a schema after a colon: `: integer`, `: "a" or "b"`; "" where it has none in itself."""
    if not isinstance(schema, Mapping):
        return ""
    known = cast("Mapping[str, Any]", schema)
    if isinstance(values := known.get("enum"), list):
        return f": {' or '.join(json.dumps(each, ensure_ascii=False) for each in cast('list[object]', values))}"
    if isinstance(parts := known.get("anyOf"), list):
        return f": {' or '.join(_type(each)[2:] or '...' for each in cast('list[object]', parts))}"
    kinds = known.get("type", ())
    return f": {' or '.join([kinds] if isinstance(kinds, str) else kinds)}" if kinds else ""
