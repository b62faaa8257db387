"""Actions on a page: parsed from a line of text or from a call of a tool."""

import re
from dataclasses import dataclass

from bough.env.screens.command import clean, read_command
from bough.tree import Tool, ToolCall
from bough.tree.pointing import Box, Point

LINE = re.compile(r"\s*(type|select|press)\s+(.*?)\s*", re.DOTALL)
NUMBERED = re.compile(r"([0-9]{1,6})(?:\s+(.*))?", re.DOTALL)
LONGEST_LINE = 2000
"""Characters; a longer text is cut."""

KEYS = {
    "enter": ("Enter", 13, "\r"),
    "tab": ("Tab", 9, ""),
    "escape": ("Escape", 27, ""),
    "backspace": ("Backspace", 8, ""),
    "delete": ("Delete", 46, ""),
    "space": (" ", 32, " "),
    "left": ("ArrowLeft", 37, ""),
    "up": ("ArrowUp", 38, ""),
    "right": ("ArrowRight", 39, ""),
    "down": ("ArrowDown", 40, ""),
    "home": ("Home", 36, ""),
    "end": ("End", 35, ""),
    "pageup": ("PageUp", 33, ""),
    "pagedown": ("PageDown", 34, ""),
}
"""By name: the key, its code, and the text that it enters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """An action.

    Attributes:
        verb: "click", "type", "select" or "press".
        ref: Number of an element; 0 for a click by coordinates, and for a key.
        text: The text to type, the option to select, or the name of the key.
        points: Of a click by coordinates, best first.
        box: Of a click that was written as a box.
    """

    verb: str
    ref: int = 0
    text: str = ""
    points: tuple[Point, ...] = ()
    box: Box | None = None

    def line(self) -> str:
        """The text of the action; a click by coordinates has its first point."""
        if self.points:
            return f"click {self.points[0][0]} {self.points[0][1]}"
        return " ".join(filter(None, (self.verb, str(self.ref or ""), self.text)))


def read_line(line: str) -> Command | None:
    """Parses a line; None for a line that is no action.

    Example:
        >>> read_line("type 3 ann"), read_line("click 40 7").points
        (Command(verb='type', ref=3, text='ann', points=(), box=None), ((40, 7),))
    """
    line = line[:LONGEST_LINE]
    found = LINE.fullmatch(line)
    if not found:
        return _pointed(line)
    if found[1] == "press":
        key = found[2].lower()
        return Command(verb="press", text=key) if key in KEYS else None
    numbered = NUMBERED.fullmatch(found[2])
    if not numbered:
        return None
    text = clean(numbered[2] or "")
    return Command(verb=found[1], ref=int(numbered[1]), text=text) if text or found[1] == "type" else None


def _pointed(line: str) -> Command | None:
    """A click by a number, by coordinates, by a box, or by points."""
    found = read_command(line)
    if found is None or found.verb != "click":
        return None
    if found.points:
        return Command(verb="click", points=found.points, box=found.box)
    return Command(verb="click", ref=int(found.text)) if re.fullmatch(r"[0-9]{1,6}", found.text) else None


def _tool(name: str, description: str, **properties: dict[str, object]) -> Tool:
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return Tool(name=name, description=description, schema=schema)


_NUMBER: dict[str, object] = {"type": "integer", "minimum": 0, "maximum": 999999}
_TEXT: dict[str, object] = {"type": "string"}

TOOLS = (
    _tool("click", "Click an element by its number.", element=_NUMBER),
    _tool("tap", "Click a point of the page, in pixels.", x=_NUMBER, y=_NUMBER),
    _tool("type", "Replace the text of a field.", element=_NUMBER, text=_TEXT),
    _tool("select", "Select an option of a list.", element=_NUMBER, option=_TEXT),
    _tool("press", "Press a key.", key={"enum": [*KEYS]}),
)
"""The actions as tools."""

ARGUMENTS = ("element", "x", "y", "text", "option", "key")


def line_of(call: ToolCall) -> str:
    """The line of a call that fits its schema."""
    verb = "click" if call.name == "tap" else call.name
    return " ".join([verb, *(str(call.arguments[name]) for name in ARGUMENTS if name in call.arguments)])


def call_of(line: str) -> ToolCall:
    """The call of a line that `read_line` parses."""
    verb, _, rest = line.partition(" ")
    first, _, last = rest.partition(" ")
    if verb == "press":
        return ToolCall(name=verb, arguments={"key": rest})
    if verb == "click" and last:
        return ToolCall(name="tap", arguments={"x": int(first), "y": int(last)})
    named = {"type": {"text": last}, "select": {"option": last}}.get(verb, {})
    return ToolCall(name=verb, arguments={"element": int(first), **named})
