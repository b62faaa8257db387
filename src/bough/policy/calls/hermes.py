"""Calls of Hermes, Qwen2.5 and Qwen3: JSON between tags."""

import json
import re
from dataclasses import dataclass

from bough.policy.calls.objects import decode_json, json_call, no_id
from bough.policy.calls.thinking import find_call
from bough.tree import Action, BadCall, ToolCall

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MARK = re.compile(rf"{OPEN}\s*")
CLOSED = re.compile(rf"\s*{CLOSE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hermes:
    """A call is JSON between `<tool_call>` and `</tool_call>`; an action may have several, and text around them.

    Example:
        >>> Hermes().parse('Look. <tool_call>{"name": "find", "arguments": {"item": "tea"}}</tool_call>')
        Action(text='Look.', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    def parse(self, text: str, begin: int = 0) -> Action:
        """See `CallFormat`."""
        kept, at = "", 0
        calls: list[ToolCall | BadCall] = []
        while found := find_call(MARK, text, max(begin, at)):
            kept += text[at : found.start()]
            call, at = _call(text, found)
            calls.append(call)
        return Action(text=(kept + text[at:]).strip(), calls=tuple(calls))

    def write(self, action: Action) -> str:
        """See `CallFormat`."""
        return "\n".join([*([action.text] if action.text else []), *map(_written, action.calls)])

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`."""
        return call_id


def _call(text: str, mark: re.Match[str]) -> tuple[ToolCall | BadCall, int]:
    """The call after a mark, and the position after it."""
    begin = mark.end()
    problem = f"got no {CLOSE} after the call; end each call with it"
    try:
        value, end = decode_json(text, begin)
    except ValueError as error:
        problem = f'got {error}; need {{"name": "NAME", "arguments": {{...}}}} between {OPEN} and {CLOSE}'
    else:
        if closed := CLOSED.match(text, end):
            return json_call(value, text[begin:end], key="arguments", call_id=no_id), closed.end()
        if CLOSE in text[end:].partition(OPEN)[0]:
            problem = f"got text between the JSON of a call and {CLOSE}; need the JSON alone"
    # A bad call ends at its closing tag, else before the next call.
    inside = text[begin:].partition(OPEN)[0]
    bad, closing, _ = inside.partition(CLOSE)
    end = begin + len(bad) + len(closing)
    return BadCall(text=text[mark.start() : end], problem=problem), end


def _written(call: ToolCall | BadCall) -> str:
    if isinstance(call, BadCall):
        return call.text
    row = {"name": call.name, "arguments": dict(call.arguments)}
    return f"{OPEN}\n{json.dumps(row, ensure_ascii=False)}\n{CLOSE}"
