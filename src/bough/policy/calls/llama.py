"""Calls of Llama 3.1 to 3.3: a JSON object with parameters."""

import json
import re
from dataclasses import dataclass

from bough.policy.calls.objects import decode_json, json_call, no_id
from bough.policy.calls.thinking import LINE, find_call
from bough.tree import Action, BadCall, ToolCall

TAG = r"<\|python_tag\|>"
MARK = re.compile(rf'{TAG}\s*|{LINE}(?=\{{\s*"(?:name|type|function|parameters)")', re.MULTILINE)
SEPARATOR = re.compile(rf"(?:[\s;,]|{TAG})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Llama:
    """A call is a JSON object at the beginning of a line, or after `<|python_tag|>`; semicolons separate several.

    Example:
        >>> Llama().parse('{"name": "find", "parameters": {"item": "tea"}}')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    def parse(self, text: str, begin: int = 0) -> Action:
        """See `CallFormat`."""
        found = find_call(MARK, text, begin)
        if found is None:
            return Action(text=text.strip())
        calls, end = _calls(text, found.end())
        around = text[: found.start()].strip(), text[end:].strip()
        return Action(text="\n".join(filter(None, around)), calls=tuple(calls))

    def write(self, action: Action) -> str:
        """See `CallFormat`."""
        calls = "; ".join(map(_written, action.calls))
        return "\n".join(filter(None, (action.text, calls)))

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`."""
        return call_id


def _calls(text: str, at: int) -> tuple[list[ToolCall | BadCall], int]:
    """The calls at a position, and the position after them; what follows and is no object is text."""
    calls: list[ToolCall | BadCall] = []
    while not calls or text.startswith("{", at):
        try:
            value, end = decode_json(text, at)
        except ValueError as error:
            problem = f'got {error}; need {{"name": "NAME", "parameters": {{...}}}}, with a semicolon between calls'
            return [*calls, BadCall(text=text[at:], problem=problem)], len(text)
        calls.append(json_call(value, text[at:end], key="parameters", call_id=no_id))
        separator = SEPARATOR.match(text, end)
        at = separator.end() if separator else end
    return calls, at


def _written(call: ToolCall | BadCall) -> str:
    if isinstance(call, BadCall):
        return call.text
    return json.dumps({"name": call.name, "parameters": dict(call.arguments)}, ensure_ascii=False)
