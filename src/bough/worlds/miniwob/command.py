"""Actions on a page: parsed from a line of text or from a call of a tool."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bough.env.tools.tool_schema import NUMBER, TEXT, required_tool
from bough.screen.pointing import Box, Point
from bough.tree import ToolCall
from bough.worlds.screens.command import clean, read_command

LINE = re.compile(r"\s*(click|type|select|press)\s+(.*?)\s*", re.DOTALL)
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

    def line(self, name: str) -> str:
        """The text of the action on an element with an id; a click by coordinates has its first point."""
        if self.points:
            return f"click {self.points[0][0]} {self.points[0][1]}"
        if self.verb == "press":
            return f"press {self.text}"
        text = (f'"{self.text}"',) if self.verb in ("type", "select") else ()
        return " ".join((self.verb, name, *text))

    def call(self, name: str) -> ToolCall:
        """The action on an element with an id, as a call."""
        if self.points:
            return ToolCall(name="tap", arguments={"x": self.points[0][0], "y": self.points[0][1]})
        if self.verb == "press":
            return ToolCall(name="press", arguments={"key": self.text})
        named = {"type": {"text": self.text}, "select": {"option": self.text}}.get(self.verb, {})
        return ToolCall(name=self.verb, arguments={"element": name, **named})


def read_line(line: str, names: Sequence[str]) -> Command | None:
    """Parses a line; None for a line that is no action.

    An element that does not exist has the number `len(names) + 1`.

    Names and texts may be in double quotes.

    Examples:
        >>> read_line('type "user" "ann"', ("user", "log in")), read_line("click 40 7", ("1", "2")).points
        (Command(verb='type', ref=1, text='ann', points=(), box=None), ((40, 7),))

    Args:
        line: The text of the action.
        names: The ids of the elements, in the order of the page.
    """
    found = LINE.fullmatch(line[:LONGEST_LINE])
    if not found:
        return _pointed(line[:LONGEST_LINE])
    verb, rest = found[1], clean(found[2])
    if verb == "press":
        return Command(verb=verb, text=rest.lower()) if rest.lower() in KEYS else None
    known = _places(names)
    missing = len(names) + 1
    if verb == "click":
        if unquoted(rest) in known:
            return Command(verb=verb, ref=known[unquoted(rest)])
        pointed = _pointed(line[:LONGEST_LINE])
        return pointed or (Command(verb=verb, ref=missing) if unquoted(rest) else None)
    name, text = _divided(rest, known)
    return Command(verb=verb, ref=known.get(name, missing), text=text) if text or verb == "type" else None


def unquoted(text: str) -> str:
    """A text without the double quotes around it."""
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def _places(names: Sequence[str]) -> dict[str, int]:
    """The number of each element by its id."""
    known: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        known.setdefault(_normalized(name), place)
    return known


def _normalized(name: str) -> str:
    """An id on one line, without double quotes inside, so that it can be written between double quotes."""
    return clean(name).replace('"', "'")


def _divided(rest: str, known: Mapping[str, int]) -> tuple[str, str]:
    """The name of an element, the longest that fits, and the text after it."""
    ways = [(name, start) for name in known if name for start in (name, f'"{name}"')]
    fits = [(len(start), name) for name, start in ways if rest == start or rest.startswith(f"{start} ")]
    length, name = max(fits, default=(0, ""))
    return name, unquoted(rest[length:].strip())


def _pointed(line: str) -> Command | None:
    """A click by coordinates, by a box, or by points."""
    found = read_command(line)
    if found is None or found.verb != "click" or not found.points:
        return None
    return Command(verb="click", points=found.points, box=found.box)


TOOLS = (
    required_tool("click", "Click an element by its id.", element=TEXT),
    required_tool("tap", "Click a point of the page, in pixels.", x=NUMBER, y=NUMBER),
    required_tool("type", "Replace the text of a field.", element=TEXT, text=TEXT),
    required_tool("select", "Select an option of a list.", element=TEXT, option=TEXT),
    required_tool("press", "Press a key.", key={"enum": [*KEYS]}),
)
"""The actions as tools."""


def read_call(call: ToolCall, names: Sequence[str]) -> Command:
    """The action of a call that fits its schema; its texts are taken as they are, also with quotes.

    Examples:
        >>> read_call(ToolCall(name="type", arguments={"element": "user", "text": '"ann"'}), ("user",))
        Command(verb='type', ref=1, text='"ann"', points=(), box=None)
    """
    given = call.arguments
    if call.name == "tap":
        return Command(verb="click", points=((int(float(str(given["x"]))), int(float(str(given["y"])))),))
    if call.name == "press":
        return Command(verb="press", text=str(given["key"]))
    ref = _places(names).get(_normalized(unquoted(clean(str(given["element"])))), len(names) + 1)
    return Command(verb=call.name, ref=ref, text=clean(str(given.get("text", given.get("option", "")))))
