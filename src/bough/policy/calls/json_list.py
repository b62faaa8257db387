"""Calls of Granite 3, Phi-4-mini, Nemotron, Jamba and Apriel: a JSON list after a mark."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.objects import decode_json, json_call, no_id, write_json
from bough.policy.calls.scan import ReadCalls, after, bad_call, scan, skip, write_action
from bough.tree import Action, BadCall, Tool, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonList(PlainFormat):
    """The calls are a JSON list of objects between two marks; one object alone is parsed, too.

    Attributes:
        start: The text before the list.
        end: The text after it; "" where the end of the message ends it.
        before: Written between a text and `start`.
        single: Whether each call is an object with marks of its own, in place of a list.

    Examples:
        >>> call_format = JsonList(start="<TOOLCALL>", end="</TOOLCALL>")
        >>> call_format.parse('<TOOLCALL>[{"name": "find", "arguments": {"item": "tea"}}]</TOOLCALL>')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    start: str
    end: str = ""
    before: str = "\n"
    single: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (self.start,)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        return scan(re.compile(rf"{re.escape(self.start)}\s*"), text, begin, partial(self._read, text))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        return write_action(action, partial(self._written, hide), self.before)

    def _written(self, hide: Callable[[str], str], calls: Sequence[ToolCall]) -> str:
        rows = [hide(write_json(call_row(call))) for call in calls]
        if self.single:
            return "".join(f"{self.start}{row}{self.end}" for row in rows)
        return f"{self.start}[{', '.join(rows)}]{self.end}"

    def _read(self, text: str, mark: re.Match[str]) -> ReadCalls:
        shown = f'{self.start}[{{"name": "NAME", "arguments": {{...}}}}]{self.end}'
        calls: list[ToolCall | BadCall] = []
        end = mark.end()
        while text.startswith("{", at := skip(text, end)):
            try:
                value, end = decode_json(text, at)
            except ValueError as error:
                return bad_call(text, mark, self.end, f"got {error}; need {shown}", mark.re)
            calls.append(json_call(value, text[at:end], key="arguments", call_id=no_id))
        if not calls and text.startswith("[", end):
            calls, end = read_list(text, end, shown, lambda _number, _part: no_id)
        elif not calls:
            return bad_call(text, mark, self.end, f"got no list of calls; need {shown}", mark.re)
        if (stop := after(text, end, self.end)) > end:
            return calls, stop
        if self.end and not isinstance(calls[-1], BadCall):
            return bad_call(text, mark, self.end, f"got no {self.end} after the calls; need {shown}", mark.re)
        return calls, end


def call_row(call: ToolCall) -> dict[str, object]:
    """A call as the object of most families."""
    return {"name": call.name, "arguments": dict(call.arguments)}


def read_list(
    text: str, begin: int, shown: str, call_id: Callable[[int, str], Callable[[Mapping[str, object]], str]]
) -> ReadCalls:
    """The calls of a JSON list, and the position after it. A call after which the list does not go on, or end, is bad.

    Args:
        text: The text of an action.
        begin: The position of the opening bracket.
        shown: The format, for what is wrong.
        call_id: From the number of a call and its text: returns the id of the call in an object.
    """
    calls: list[ToolCall | BadCall] = []
    at = begin
    while text[at] != "]" or not calls:
        start = skip(text, at + 1)
        try:
            value, end = decode_json(text, start)
        except ValueError as error:
            return [*calls, BadCall(text=text[start:], problem=f"got {error}; need {shown}")], len(text)
        part, at = text[start:end], skip(text, end)
        if text[at : at + 1] not in {",", "]"}:
            return [*calls, BadCall(text=text[start:], problem=f"got no ] after the calls; need {shown}")], len(text)
        calls.append(json_call(value, part, key="arguments", call_id=call_id(len(calls), part)))
    return calls, at + 1
