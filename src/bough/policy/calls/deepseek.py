"""Calls of DeepSeek R1, V3 and V3.1: a name and JSON arguments between special tokens."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.objects import decode_json, json_call, no_id, write_json
from bough.policy.calls.scan import ReadCalls, bad_call, good_and_bad, joined, scan, skip
from bough.tree import Action, BadCall, Tool, ToolCall

# Their bars are full-width, and their blanks are lower blocks.
BEGIN, END, CALL, SEPARATOR, CALL_END = (
    f"<\uff5ctool\u2581{name}\uff5c>"
    for name in ("calls\u2581begin", "calls\u2581end", "call\u2581begin", "sep", "call\u2581end")
)
MARK = re.compile(rf"(?:{BEGIN}\s*)?{CALL}|{BEGIN}")
NEXT = re.compile(rf"(?:{BEGIN}\s*)?{CALL}")
HEAD = re.compile(rf"(?:function{SEPARATOR}([^\n<]+)\s*```json\s*|\s*([^\n<]+){SEPARATOR}\s*)(?=\{{)")
TAIL = re.compile(rf"\s*(?:```)?\s*{CALL_END}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepSeek(PlainFormat):
    """A call has its name before a separator (V3.1), or after it and with fenced arguments (R1). Both are parsed.

    Attributes:
        fenced: Whether calls are written as by R1 and V3.

    Example:
        >>> found = DeepSeek().parse(DeepSeek().write(Action(calls=(ToolCall(name="find", arguments={"n": 1}),))))
        >>> found
        Action(text='', calls=(ToolCall(name='find', arguments={'n': 1}, call_id=''),))
    """

    fenced: bool = False

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
        calls = ("\n" if self.fenced else "").join(self._written(call, hide) for call in good)
        return joined((action.text, (f"{BEGIN}{calls}{END}" if good else "") + bad), "")

    def _written(self, call: ToolCall, hide: Callable[[str], str]) -> str:
        name, arguments = hide(call.name), hide(write_json(dict(call.arguments)))
        if self.fenced:
            return f"{CALL}function{SEPARATOR}{name}\n```json\n{arguments}\n```{CALL_END}"
        return f"{CALL}{name}{SEPARATOR}{arguments}{CALL_END}"


def _read(text: str, mark: re.Match[str]) -> ReadCalls:
    """The call after a mark, with the end of all calls where it follows."""
    need = f"need {BEGIN}{CALL}NAME{SEPARATOR}{{...}}{CALL_END}{END}"
    head = HEAD.match(text, mark.end())
    if head is None or not mark[0].endswith(CALL):
        return bad_call(text, mark, CALL_END, f"got no name and JSON object; {need}", NEXT)
    try:
        arguments, end = decode_json(text, head.end())
    except ValueError as error:
        return bad_call(text, mark, CALL_END, f"got {error}; {need}", NEXT)
    tail = TAIL.match(text, end)
    if tail is None:
        return bad_call(text, mark, CALL_END, f"got no {CALL_END} after a call; {need}", NEXT)
    row = {"name": (head[1] or head[2]).strip(), "arguments": arguments}
    call: ToolCall | BadCall = json_call(row, text[mark.start() : tail.end()], key="arguments", call_id=no_id)
    closing = skip(text, tail.end())
    return [call], closing + len(END) if text.startswith(END, closing) else tail.end()
