"""Calls as a Python list: `[find(item="tea"), wait()]`."""

import ast
import json
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass

from bough.policy.calls.objects import check_value, decode_json
from bough.policy.calls.thinking import LINE, find_call
from bough.tree import Action, BadCall, ToolCall

NAME = r"[A-Za-z_][\w./-]*"
LIST = re.compile(rf"{LINE}(?=\[\s*{NAME}\s*\()", re.MULTILINE)
HEAD = re.compile(rf"({NAME})\s*(?=\()")
ARGUMENT = re.compile(r"(\w+)\s*=\s*(.*)", re.DOTALL)
PIECE = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|["\'\[\](){},]', re.DOTALL)
QUOTES = {quotes: re.compile(rf"(?:\\.|[^\\])*?{quotes}", re.DOTALL) for quotes in ('"""', "'''")}
CLOSING = {"[": "]", "(": ")", "{": "}"}
NEED = 'need [NAME(ARGUMENT="VALUE"), ...] with named arguments and literal values'


@dataclass(frozen=True, slots=True, kw_only=True)
class Pythonic:
    """The calls are a list of Python calls with named arguments and literal values, Python's or JSON's.

    Nothing is executed.

    Attributes:
        start: The text before the list; "" for a list at the beginning of a line.
        end: The text after it.

    Example:
        >>> Pythonic().parse('[find(item="tea")]')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    start: str = ""
    end: str = ""

    def parse(self, text: str, begin: int = 0) -> Action:
        """See `CallFormat`."""
        mark = re.compile(rf"{re.escape(self.start)}\s*", re.MULTILINE) if self.start else LIST
        kept, at = "", 0
        calls: list[ToolCall | BadCall] = []
        while found := find_call(mark, text, max(begin, at)):
            kept += text[at : found.start()]
            more, at = self._calls(text, found.end())
            calls += more
        return Action(text=(kept + text[at:]).strip(), calls=tuple(calls))

    def write(self, action: Action) -> str:
        """See `CallFormat`."""
        calls = [_written(call) for call in action.calls if isinstance(call, ToolCall)]
        bad = [call.text for call in action.calls if isinstance(call, BadCall)]
        listed = f"{self.start}[{', '.join(calls)}]{self.end}" if calls else ""
        return "\n".join(filter(None, (action.text, listed, *bad)))

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`."""
        return call_id

    def _calls(self, text: str, begin: int) -> tuple[list[ToolCall | BadCall], int]:
        """The calls of a list, and the position after it."""
        parts, end = _parts(text, begin) if text.startswith("[", begin) else (None, begin)
        if not parts:
            closing = text.find(self.end, begin) if self.end else -1
            end = len(text) if closing < 0 else closing + len(self.end)
            return [BadCall(text=text[begin:end], problem=f"got no Python list of calls; {NEED}")], end
        closing = end + len(text[end:]) - len(text[end:].lstrip())
        end = closing + len(self.end) if self.end and text.startswith(self.end, closing) else end
        return [*map(_call, parts)], end


def _parts(text: str, begin: int) -> tuple[list[str] | None, int]:
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


def _call(text: str) -> ToolCall | BadCall:
    head = HEAD.match(text)
    parts, end = _parts(text, head.end()) if head else (None, 0)
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        parsed = ast.parse(text, mode="eval")
    for each in ast.walk(parsed):
        keys = [ast.dump(key) for key in each.keys if key] if isinstance(each, ast.Dict) else []
        if len(set(keys)) < len(keys):
            raise ValueError("a key twice")
    value = ast.literal_eval(parsed)
    check_value(value)
    return value


def _written(call: ToolCall) -> str:
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"
