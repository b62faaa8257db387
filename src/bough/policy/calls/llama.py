"""Calls of Llama 3.1 to 3.3: a JSON object with parameters."""

import json
import re
from dataclasses import dataclass

from bough.policy.calls.objects import decode_json, json_call, no_id, split_thinking
from bough.tree import Action, BadCall, ToolCall

TAG = "<|python_tag|>"
CALL = re.compile(r'^\s*\{\s*"(?:name|type|function|parameters)"', re.MULTILINE)
SEPARATOR = re.compile(r"[\s;,]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Llama:
    """A call is a JSON object at the beginning of a line, or after `<|python_tag|>`; semicolons separate several.

    Example:
        >>> Llama().parse('{"name": "find", "parameters": {"item": "tea"}}')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    def parse(self, text: str) -> Action:
        """See `CallFormat`."""
        kept, rest = split_thinking(text)
        before, tag, body = rest.partition(TAG)
        if not tag:
            found = CALL.search(rest)
            if found is None:
                return Action(text=text.strip())
            before, body = rest[: found.start()], rest[found.start() :]
        return Action(text=(kept + before).strip(), calls=tuple(_calls(body.strip())))

    def write(self, action: Action) -> str:
        """See `CallFormat`."""
        calls = "; ".join(map(_written, action.calls))
        return "\n".join(filter(None, (action.text, calls)))

    def template_id(self, call_id: str) -> str:
        """See `CallFormat`."""
        return call_id


def _calls(body: str) -> list[ToolCall | BadCall]:
    calls: list[ToolCall | BadCall] = []
    at = 0
    while at < len(body) or not calls:
        try:
            value, end = decode_json(body, at)
        except ValueError as error:
            problem = f'got {error}; need {{"name": "NAME", "parameters": {{...}}}}, with a semicolon between calls'
            return [*calls, BadCall(text=body[at:], problem=problem)]
        calls.append(_call(value, body[at:end]))
        at = end + len((SEPARATOR.match(body, end) or [""])[0])
    return calls


def _call(value: object, text: str) -> ToolCall | BadCall:
    return json_call(value, text, key="parameters", call_id=no_id)


def _written(call: ToolCall | BadCall) -> str:
    if isinstance(call, BadCall):
        return call.text
    return json.dumps({"name": call.name, "parameters": dict(call.arguments)}, ensure_ascii=False)
