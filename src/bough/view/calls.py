"""Calls and tools as people write them: `get(name="ann")`."""

import json
from collections.abc import Mapping
from typing import cast

from bough.tree import BadCall, Tool, ToolCall


def call_line(call: ToolCall | BadCall) -> str:
    """A call with its arguments; the text of a malformed call."""
    if isinstance(call, BadCall):
        return call.text
    arguments = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items())
    return f"{call.name}({', '.join(arguments)})"


def tool_line(tool: Tool) -> str:
    """A tool with the names of its arguments, and the first line of its description."""
    names = ", ".join(cast("Mapping[str, object]", tool.schema.get("properties", {})))
    return f"{tool.name}({names})  {' '.join(tool.description.strip().splitlines()[:1])}"
