"""Calls of Kimi-K2: an id with the name of the tool, and JSON arguments, between special tokens."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.objects import decode_json, json_call, write_json
from bough.policy.calls.scan import ReadCalls, bad_call, good_and_bad, joined, scan, skip
from bough.tree import Action, Tool, ToolCall

BEGIN, END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, ARGUMENTS, CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
MARK = re.compile(rf"(?:{re.escape(BEGIN)}\s*)?{re.escape(CALL)}\s*|{re.escape(BEGIN)}")
NEXT = re.compile(rf"(?:{re.escape(BEGIN)}\s*)?{re.escape(CALL)}")
HEAD = re.compile(rf"(?:functions\.)?([^\n<]+):(\d+)\s*{re.escape(ARGUMENTS)}\s*")
ID = re.compile(r"functions\.(.+):\d+", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kimi(PlainFormat):
    """A call is `functions.NAME:NUMBER`, which is its id, and JSON arguments. Other ids get another number.

    Example:
        >>> found = Kimi().parse(Kimi().write(Action(calls=(ToolCall(name="find", arguments={"n": 1}),))))
        >>> found
        Action(text='', calls=(ToolCall(name='find', arguments={'n': 1}, call_id='functions.find:0'),))
    """

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (BEGIN, CALL)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        return scan(MARK, text, begin, partial(_read, text))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        good, bad = good_and_bad(action)
        calls = "".join(_written(call, number, hide) for number, call in enumerate(good))
        return joined((action.text, (f"{BEGIN}{calls}{END}" if good else "") + bad), "")


def _read(text: str, mark: re.Match[str]) -> ReadCalls:
    """The call after a mark, with the end of all calls where it follows."""
    need = f"need {BEGIN}{CALL}functions.NAME:0{ARGUMENTS}{{...}}{CALL_END}{END}"
    head = HEAD.match(text, mark.end())
    if head is None or CALL not in mark[0]:
        return bad_call(text, mark, CALL_END, f"got no id of a call with the name of a tool; {need}", NEXT)
    try:
        arguments, end = decode_json(text, head.end())
    except ValueError as error:
        return bad_call(text, mark, CALL_END, f"got {error}; {need}", NEXT)
    closing = skip(text, end)
    if not text.startswith(CALL_END, closing):
        return bad_call(text, mark, CALL_END, f"got no {CALL_END} after a call; {need}", NEXT)
    stop = closing + len(CALL_END)
    row, call_id = {"name": head[1], "arguments": arguments}, f"functions.{head[1]}:{head[2]}"
    call = json_call(row, text[mark.start() : stop], key="arguments", call_id=lambda _: call_id)
    last = skip(text, stop)
    return [call], last + len(END) if text.startswith(END, last) else stop


def _written(call: ToolCall, number: int, hide: Callable[[str], str]) -> str:
    known = ID.fullmatch(call.call_id)
    call_id = call.call_id if known and known[1] == call.name else f"functions.{call.name}:{number}"
    return f"{CALL}{hide(call_id)}{ARGUMENTS}{hide(write_json(dict(call.arguments)))}{CALL_END}"
