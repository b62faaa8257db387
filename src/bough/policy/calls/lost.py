"""Calls that an action has in a place or a format in which they are none."""

import re
from collections.abc import Sequence

from bough.policy.calls.find import foreign_call
from bough.policy.calls.format import CallFormat
from bough.tree import Action, BadCall, Tool, ToolCall
from bough.tree.thinking import THINK_END, find_outside_thinking, open_thinking

TAG = re.compile(r"[<\[][^\s<>\[\]]+[>\]]")
"""The shape of a tag, and of a mark of messages."""

EXAMPLE = Action(calls=(ToolCall(name="NAME", arguments={"ARGUMENT": "VALUE"}),))
"""Shows the format of calls."""


def call_tags(call_format: CallFormat) -> re.Pattern[str]:
    """Matches what only calls of a format have: their marks, and the tags within them."""
    tags = {*call_format.marks, *TAG.findall(call_format.write(EXAMPLE))}
    return re.compile("|".join(map(re.escape, sorted(tags, key=len, reverse=True))) or "(?!)")


def with_lost_call(action: Action, call_format: CallFormat, tags: re.Pattern[str], tools: Sequence[Tool]) -> Action:
    """An action without calls, with a bad call for one in open thinking, a part of one, or one of another family.

    Args:
        action: The action.
        call_format: The format of the model's calls.
        tags: The tags of its calls; see `call_tags`.
        tools: The tools of the state.
    """
    example = call_format.write(EXAMPLE)
    if found := tags.search(action.text, open_thinking(action.text)):
        return _with_bad(action, found.start(), f"got a call in thinking that does not end; need {THINK_END} before it")
    if found := find_outside_thinking(tags, action.text):
        return _with_bad(action, found.start(), f"got a part of a call; need {example!r}")
    if foreign := foreign_call(action.text, call_format, tools):
        family, begin = foreign
        return _with_bad(action, begin, f"got a call in the format of {family}; need {example!r}", family)
    return action


def _with_bad(action: Action, begin: int, problem: str, family: str = "") -> Action:
    """An action whose text from a position on is a bad call."""
    bad = BadCall(text=action.text[begin:], problem=problem, family=family)
    return Action(text=action.text[:begin].strip(), calls=(bad,))
