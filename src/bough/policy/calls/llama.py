"""Calls of Llama 3.1 to 3.3: a JSON object with parameters."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.objects import decode_json, json_call, no_id, write_json
from bough.policy.calls.thinking import LINE, find_call
from bough.tree import Action, BadCall, Tool, ToolCall

TAG = r"<\|python_tag\|>"
MARK = re.compile(rf'{TAG}\s*|{LINE}(?=\{{\s*"(?:name|type|function|parameters)")', re.MULTILINE)
SEPARATOR = re.compile(rf"(?:[\s;,]|{TAG})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Llama(PlainFormat):
    """A call is a JSON object at the beginning of a line, or after `<|python_tag|>`; semicolons separate several.

    Example:
        >>> Llama().parse('{"name": "find", "parameters": {"item": "tea"}}')
        Action(text='', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return ("<|python_tag|>",)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        found = find_call(MARK, text, begin)
        if found is None:
            return Action(text=text.strip())
        calls, end = _calls(text, found.end())
        around = text[: found.start()].strip(), text[end:].strip()
        return Action(text="\n".join(filter(None, around)), calls=tuple(calls))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        calls = "; ".join(_written(call, hide) for call in action.calls)
        return "\n".join(filter(None, (action.text, calls)))


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


def _written(call: ToolCall | BadCall, hide: Callable[[str], str]) -> str:
    if isinstance(call, BadCall):
        return call.text
    return hide(write_json({"name": call.name, "parameters": dict(call.arguments)}))
