"""Schemas of tools whose arguments are all required."""

from bough.tree import Tool

NUMBER: dict[str, object] = {"type": "integer", "minimum": 0, "maximum": 999999}
"""The schema of a coordinate, in pixels."""
TEXT: dict[str, object] = {"type": "string"}
"""The schema of a text."""


def required_tool(name: str, description: str, **properties: dict[str, object]) -> Tool:
    """A tool with the schema of each argument by its name; all arguments are required and no other is allowed."""
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return Tool(name=name, description=description, schema=schema)
