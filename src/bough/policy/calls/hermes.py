"""Calls of Hermes, Qwen2.5 and Qwen3: JSON between tags."""

import json
import re
from dataclasses import dataclass

from bough.policy.calls.objects import decode_json, json_call, no_id, split_thinking
from bough.tree import Action, BadCall, ToolCall

OPEN, CLOSE = "<tool_call>", "</tool_call>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hermes:
    """A call is JSON between `<tool_call>` and `</tool_call>`; an action may have several, and text around them.

    Example:
        >>> Hermes().parse('Look. <tool_call>{"name": "find", "arguments": {"item": "tea"}}</tool_call>')
        Action(text='Look.', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    def parse(self, text: str) -> Action:
        """See `CallFormat`."""
        kept, rest = split_thinking(text)
        calls: list[ToolCall | BadCall] = []
        while (begin := rest.find(OPEN)) >= 0:
            kept, rest = kept + rest[:begin], rest[begin + len(OPEN) :]
            call, rest = _call(rest)
            calls.append(call)
        return Action(text=(kept + rest).strip(), calls=tuple(calls))

    def write(self, action: Action) -> str:
        """See `CallFormat`."""
        return "\n".join([*([action.text] if action.text else []), *map(_written, action.calls)])

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`."""
        return call_id


def _call(text: str) -> tuple[ToolCall | BadCall, str]:
    """The call at the beginning of a text after `OPEN`, and the text after it."""
    begin = len(text) - len(text.lstrip())
    problem = f"got no {CLOSE} after the call; end each call with it"
    try:
        value, end = decode_json(text, begin)
    except ValueError as error:
        problem = f'got {error}; need {{"name": "NAME", "arguments": {{...}}}} between {OPEN} and {CLOSE}'
    else:
        closed = re.compile(rf"\s*{CLOSE}").match(text, end)
        if closed:
            return json_call(value, text[begin:end], key="arguments", call_id=no_id), text[closed.end() :]
        if CLOSE in text[end:].partition(OPEN)[0]:
            problem = f"got text between the JSON of a call and {CLOSE}; need the JSON alone"
    # A bad call ends at its closing tag, else before the next call.
    inside, opened, after = text.partition(OPEN)
    bad, closing, rest = inside.partition(CLOSE)
    return BadCall(text=f"{OPEN}{bad}{closing}", problem=problem), rest + opened + after


def _written(call: ToolCall | BadCall) -> str:
    if isinstance(call, BadCall):
        return call.text
    row = {"name": call.name, "arguments": dict(call.arguments)}
    return f"{OPEN}\n{json.dumps(row, ensure_ascii=False)}\n{CLOSE}"
