"""Actions: parsed from a line of text or from a call of a tool."""

import re
from dataclasses import dataclass

from bough.env.tools.tool_schema import NUMBER, TEXT, required_tool
from bough.screen.pointing import Box, Point
from bough.tree import ToolCall
from bough.worlds.screens.form import LONGEST

BARE = ("back", "home", "wait", "done")
LINE = re.compile(r"\s*([a-z]+)(?:\s+(.*?))?\s*", re.DOTALL)
ARGUMENTS = ("id", "x", "y", "text", "direction", "app")
POINTS = 16
"""Maximum number of points of one action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """An action.

    Attributes:
        verb: "click", "type", "scroll", "open", "back", "home", "wait" or "done".
        text: The id of an element, the text to type, the direction, or the name of an app.
        points: Points of a click by coordinates, best first.
        box: Box of a click that was written as a box.
    """

    verb: str
    text: str = ""
    points: tuple[Point, ...] = ()
    box: Box | None = None


def read_command(line: str) -> Command | None:
    """Parses a line; None for a line that is no action.

    Examples:
        >>> read_command("click 3").text, read_command("click 40 7").points
        ('3', ((40, 7),))
    """
    found = LINE.fullmatch(line[: 8 * LONGEST])
    if not found:
        return None
    verb, rest = found[1], found[2] or ""
    if verb in BARE:
        return Command(verb=verb) if not rest else None
    if verb in ("click", "box", "points"):
        return _pointed(verb, rest)
    if verb == "scroll":
        return Command(verb=verb, text=rest or "down") if rest in ("", "up", "down") else None
    if verb == "open":
        return Command(verb=verb, text=clean(rest)) if rest else None
    return Command(verb=verb, text=clean(rest)) if verb == "type" else None


def clean(text: str) -> str:
    """A text as a field holds it: printable, on one line, cut at `LONGEST` characters."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST])
    return " ".join(shown.split())[:LONGEST]


def _pointed(verb: str, rest: str) -> Command | None:
    words = rest.split()
    if not all(re.fullmatch(r"[0-9]{1,6}", word) for word in words) or len(words) > 2 * POINTS:
        return Command(verb="click", text=clean(words[0])) if verb == "click" and len(words) == 1 else None
    numbers = [int(word) for word in words]
    if verb == "click" and len(numbers) == 1:
        return Command(verb="click", text=words[0])
    if verb == "box" and len(numbers) == 4 and numbers[0] <= numbers[2] and numbers[1] <= numbers[3]:
        left, top, right, bottom = numbers
        middle = ((left + right) // 2, (top + bottom) // 2)
        return Command(verb="click", points=(middle,), box=(left, top, right, bottom))
    points = tuple(zip(numbers[::2], numbers[1::2], strict=False))
    fits = len(numbers) == 2 if verb == "click" else verb == "points" and numbers and len(numbers) % 2 == 0
    return Command(verb="click", points=points) if fits else None


TOOLS = (
    required_tool("click", "Click an element by its id.", id=TEXT),
    required_tool("tap", "Click a point of the screen, in pixels.", x=NUMBER, y=NUMBER),
    required_tool("type", "Replace the text of the field in focus.", text=TEXT),
    required_tool("scroll", "Show another page of a long list.", direction={"enum": ["up", "down"]}),
    required_tool("open", "Open an app by its name.", app=TEXT),
    required_tool("back", "Leave the screen."),
    required_tool("home", "Show the home screen."),
    required_tool("wait", "Wait until a screen has loaded."),
    required_tool("done", "End the task."),
)
"""The actions as tools."""


def line_of(call: ToolCall) -> str:
    """The line of a call that fits its schema."""
    verb = "click" if call.name == "tap" else call.name
    return " ".join([verb, *(str(call.arguments[name]) for name in ARGUMENTS if name in call.arguments)])


def call_of(line: str) -> ToolCall:
    """The call of a line that `read_command` parses."""
    verb, _, rest = line.partition(" ")
    words = rest.split() if verb == "click" else []
    if len(words) == 2:
        return ToolCall(name="tap", arguments={"x": int(words[0]), "y": int(words[1])})
    name = {"click": "id", "type": "text", "scroll": "direction", "open": "app"}.get(verb, "")
    return ToolCall(name=verb, arguments={name: rest} if name else {})
