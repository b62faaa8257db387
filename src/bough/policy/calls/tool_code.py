"""Calls of Gemma 3: Python calls in a fenced block of code."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.pythonic import HEAD, LIST, NEED, read_list, read_python_call, split_python, write_python_call
from bough.policy.calls.scan import ReadCalls, after, bad_call, scan, write_action
from bough.tree import Action, BadCall, Tool, ToolCall

START, END = "```tool_code", "```"
MARK = re.compile(rf"{START}\s*|{LIST.pattern}", re.MULTILINE)
BETWEEN = re.compile(r"[\s,;]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCode(PlainFormat):
    r"""The calls are lines of Python between fences, or a list of Python calls with or without them.

    Examples:
        >>> ToolCode().parse("```tool_code\nfind(item='tea')\n```")
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (START,)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        return scan(MARK, text, begin, partial(_read, text))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        return write_action(action, partial(_written, hide), "\n")


def _written(hide: Callable[[str], str], calls: Sequence[ToolCall]) -> str:
    lines = "".join(f"{hide(write_python_call(call))}\n" for call in calls)
    return f"{START}\n{lines}{END}"


def _read(text: str, mark: re.Match[str]) -> ReadCalls:
    if not mark[0].startswith(START):
        return read_list(text, mark, "")
    calls: list[ToolCall | BadCall] = []
    at = mark.end() + text.startswith("[", mark.end())
    while head := HEAD.match(text, at):
        parts, end = split_python(text, head.end())
        if parts is None:
            break
        calls.append(read_python_call(text[at:end]))
        between = BETWEEN.match(text, end)
        at = between.end() if between else end
    listed = at + text.startswith("]", at)
    if calls and (stop := after(text, listed, END)) > listed:
        return calls, stop
    return bad_call(text, mark, f"\n{END}", f"got no Python calls between {START} and {END}; {NEED}", MARK)
