"""Calls as a Python list: `[find(item="tea"), wait()]`."""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.objects import decode_json
from bough.policy.calls.python_values import python_value
from bough.policy.calls.scan import LINE, ReadCalls, after, scan, write_action
from bough.tree import Action, BadCall, Tool, ToolCall

NAME = r"[A-Za-z_][\w./-]*"
LIST = re.compile(rf"{LINE}(?=\[\s*{NAME}\s*\()", re.MULTILINE)
HEAD = re.compile(rf"({NAME})\s*(?=\()")
ARGUMENT = re.compile(r"(\w+)\s*=\s*(.*)", re.DOTALL)
PIECE = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|["\'\[\](){},]', re.DOTALL)
QUOTES = {quotes: re.compile(rf"(?:\\.|[^\\])*?{quotes}", re.DOTALL) for quotes in ('"""', "'''")}
CLOSING = {"[": "]", "(": ")", "{": "}"}
NEED = 'need [NAME(ARGUMENT="VALUE"), ...] with named arguments and literal values'


@dataclass(frozen=True, slots=True, kw_only=True)
class Pythonic(PlainFormat):
    """The calls are a list of Python calls with named arguments and literal values, Python's or JSON's.

    Nothing is executed.

    Attributes:
        start: The text before the list; "" for a list at the beginning of a line.
        end: The text after it.

    Examples:
        >>> Pythonic().parse('[find(item="tea")]')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    start: str = ""
    end: str = ""

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`: a list at the beginning of a line has none."""
        return (self.start,) if self.start else ()

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        mark = re.compile(rf"{re.escape(self.start)}\s*", re.MULTILINE) if self.start else LIST
        return scan(mark, text, begin, partial(read_list, text, end=self.end))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        return write_action(action, partial(self._written, hide), "\n")

    def _written(self, hide: Callable[[str], str], calls: Sequence[ToolCall]) -> str:
        return f"{self.start}[{', '.join(hide(write_python_call(call)) for call in calls)}]{self.end}"


def read_list(text: str, mark: re.Match[str], end: str) -> ReadCalls:
    """The calls of the list after a mark, with the text `end` where it follows."""
    begin = mark.end()
    parts, at = split_python(text, begin) if text.startswith("[", begin) else (None, begin)
    if not parts:
        closing = text.find(end, begin) if end else -1
        at = len(text) if closing < 0 else closing + len(end)
        return [BadCall(text=text[begin:at], problem=f"got no Python list of calls; {NEED}")], at
    return [*map(read_python_call, parts)], after(text, at, end)


def split_python(text: str, begin: int) -> tuple[list[str] | None, int]:
    """What commas separate in the brackets at a position, with the position after them; None where they do not end."""
    parts: list[str] = []
    expected: list[str] = []
    start = at = begin
    while piece := PIECE.search(text, at):
        sign, at = piece[0], piece.end()
        if sign in QUOTES:
            closing = QUOTES[sign].match(text, at)
            if closing is None:
                break
            at = closing.end()
        elif sign in CLOSING:
            expected.append(CLOSING[sign])
            start = at if len(expected) == 1 else start
        elif sign == "," and len(expected) == 1:
            parts.append(text[start : at - 1].strip())
            start = at
        elif sign in {'"', "'"} or (sign in CLOSING.values() and sign != expected.pop()):
            break
        elif sign in CLOSING.values() and not expected:
            last = text[start : at - 1].strip()
            return [*parts, *([last] if last else [])], at
    return None, len(text)


def read_python_call(text: str) -> ToolCall | BadCall:
    """The call in the text of a Python call."""
    head = HEAD.match(text)
    parts, end = split_python(text, head.end()) if head else (None, 0)
    found = [ARGUMENT.fullmatch(part) for part in parts or ()]
    if head is None or parts is None or end < len(text) or not all(found):
        return BadCall(text=text, problem=f"got no call, or arguments without names; {NEED}")
    given = [(each[1], each[2]) for each in found if each]
    if len(dict(given)) < len(given):
        return BadCall(text=text, problem=f"got an argument twice; {NEED}")
    try:
        arguments = json.loads(json.dumps({name: _value(value) for name, value in given}))
    except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError):
        return BadCall(text=text, problem=f"got an argument that is no text, number, truth value, list or dict; {NEED}")
    return ToolCall(name=head[1], arguments=arguments)


def _value(text: str) -> object:
    """The value of a literal, as JSON or as Python writes it."""
    with suppress(ValueError):
        value, end = decode_json(text)
        if end == len(text):
            return value
    return python_value(text)


def write_python_call(call: ToolCall) -> str:
    """The text of a call, as Python writes it."""
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"
