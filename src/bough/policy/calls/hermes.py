"""Calls of Hermes, Qwen2.5 and Qwen3: JSON between tags."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bough.policy.calls.call_rules import json_calls
from bough.policy.calls.format import PlainFormat
from bough.policy.calls.json_list import call_row
from bough.policy.calls.objects import decode_json, json_call, no_id, write_json
from bough.policy.calls.scan import ReadCalls, after, bad_call, scan, write_action
from bough.tree import Action, Tool, ToolCall

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MARK = re.compile(rf"{OPEN}\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hermes(PlainFormat):
    """A call is JSON between `<tool_call>` and `</tool_call>`; an action may have several, and text around them.

    Examples:
        >>> Hermes().parse('Look. <tool_call>{"name": "find", "arguments": {"item": "tea"}}</tool_call>')
        Action(text='Look.', calls=(ToolCall(name='find', arguments={'item': 'tea'}, call_id=''),))
    """

    @property
    def marks(self) -> tuple[str, ...]:
        """See `CallFormat`."""
        return (OPEN,)

    def parse(self, text: str, begin: int = 0, tools: Sequence[Tool] = ()) -> Action:
        """See `CallFormat`."""
        del tools
        return scan(MARK, text, begin, partial(read_call, text))

    def write(self, action: Action, hide: Callable[[str], str] = str) -> str:
        """See `CallFormat`."""
        return write_action(action, lambda calls: "\n".join(write_call(call, hide) for call in calls), "\n")

    @property
    def never_in_line(self) -> str:
        """See `RestrictedFormat`."""
        return ""

    def call_rules(self, tools: Sequence[Tool], *, most_calls: int | None) -> str:
        """See `RestrictedFormat`."""
        return json_calls(tools, OPEN, CLOSE, most_calls=most_calls)


def read_call(text: str, mark: re.Match[str], begin: str = OPEN, end: str = CLOSE) -> ReadCalls:
    """The call after a mark. A bad one ends at its closing tag, else before the next call.

    Args:
        text: The text of an action.
        mark: The mark, with the blanks after it.
        begin: The text before a call.
        end: The text after it.
    """
    next_mark = re.compile(re.escape(begin))
    try:
        value, stop = decode_json(text, mark.end())
    except ValueError as error:
        problem = f'got {error}; need {{"name": "NAME", "arguments": {{...}}}} between {begin} and {end}'
        return bad_call(text, mark, end, problem, next_mark)
    if (closed := after(text, stop, end)) > stop:
        return [json_call(value, text[mark.end() : stop], key="arguments", call_id=no_id)], closed
    problem = f"got no {end} after the call; end each call with it"
    if end in text[stop:].partition(begin)[0]:
        problem = f"got text between the JSON of a call and {end}; need the JSON alone"
    return bad_call(text, mark, end, problem, next_mark)


def write_call(call: ToolCall, hide: Callable[[str], str], begin: str = OPEN, end: str = CLOSE) -> str:
    """The text of a call between two texts."""
    return f"{begin}\n{hide(write_json(call_row(call)))}\n{end}"
