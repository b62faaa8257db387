"""Calls of Llama 3.1 to 3.3: a JSON object with parameters."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls.format import PlainFormat
from bough.policy.calls.objects import decode_json, json_call, no_id, write_json
from bough.policy.calls.scan import LINE, ReadCalls, scan, write_action
from bough.tree import Action, BadCall, Tool, ToolCall

TAG = r"<\|python_tag\|>"
MARK = re.compile(rf'{TAG}\s*|{LINE}(?=\{{\s*"(?:name|type|function|parameters)")', re.MULTILINE)
SEPARATOR = re.compile(rf"(?:[\s;,]|{TAG})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Llama(PlainFormat):
    """A call is a JSON object at the beginning of a line, or after `<|python_tag|>`; semicolons separate several.

    Examples:
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
        return scan(MARK, text, begin, partial(_read, text))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        return write_action(action, lambda calls: "; ".join(_written(call, hide) for call in calls), "\n")


def _read(text: str, mark: re.Match[str]) -> ReadCalls:
    """The calls after a mark; what follows them and is no object is text."""
    calls: list[ToolCall | BadCall] = []
    at = mark.end()
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


def _written(call: ToolCall, hide: Callable[[str], str]) -> str:
    return hide(write_json({"name": call.name, "parameters": dict(call.arguments)}))
