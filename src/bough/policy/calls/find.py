"""Finds the format of a chat template's calls."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import takewhile

from bough.policy.calls.families import FAMILIES, Family
from bough.policy.calls.format import CallFormat
from bough.policy.calls.scan import skip
from bough.tree import Action, Tool, ToolCall
from bough.tree.thinking import answer_of, find_outside_thinking

PROBE_NAME = "probe_tool"
"""The name of the tool that is called to see how a template writes calls."""


def family_by_calls(written: Mapping[str, Action], families: Iterable[Family] = FAMILIES) -> Family | None:
    """Returns the family whose format parses the first of a template's texts of actions; None for an unknown format.

    Among several it is the one that writes most of the texts exactly, then the first.

    Args:
        written: The actions of texts; the first has one call.
        families: The families to try.
    """
    text, action = next(iter(written.items()))
    found = [each for each in families if _calls(each.call_format.parse(text)) == _calls(action)]
    exact = [sum(each.call_format.write(action) == text for text, action in written.items()) for each in found]
    return found[exact.index(max(exact))] if found else None


def family_by_marks(template: str, call: str = "") -> Family | None:
    """Returns the family whose marks a template contains; of several, the one with the longest marks.

    Args:
        template: The text of the template.
        call: What it writes of a call; one that it writes has the mark of its family.
    """
    found = [each for each in FAMILIES if each.template_marks and all(mark in template for mark in each.template_marks)]
    if PROBE_NAME in call:
        found = [each for each in found if any(mark in call for mark in each.call_format.marks)]
    return max(found, key=lambda each: len("".join(each.template_marks)), default=None)


def family_name(call_format: CallFormat) -> str:
    """The name of a format's family; that of its class where it is in no row."""
    return next((each.name for each in FAMILIES if each.call_format == call_format), type(call_format).__name__)


def foreign_call(text: str, call_format: CallFormat, tools: Sequence[Tool] = ()) -> tuple[str, int] | None:
    """Returns the name of another family whose call a text has outside of thinking, and the position of the call.

    A family's mark begins a call, and without marks what the family's format parses as a call of a known tool.

    Args:
        text: The text of an action without calls of its own.
        call_format: The format of the model's calls, whose marks are not those of another family.
        tools: The tools of the state.
    """
    others = [each for each in FAMILIES if not {*each.call_format.marks} & {*call_format.marks}]
    marks = {mark: each.name for each in reversed(others) for mark in each.call_format.marks}
    if marks and (found := find_outside_thinking(_any_of(tuple(marks)), text)):
        return marks[found[0]], found.start()
    names = {tool.name for tool in tools}
    for each in others if names else ():
        parsed = each.call_format.parse(text)
        if any(isinstance(call, ToolCall) and call.name in names for call in parsed.calls):
            before = takewhile(lambda pair: pair[0] == pair[1], zip(parsed.text, text, strict=False))
            return each.name, skip(text, sum(1 for _ in before))
    return None


@cache
def _any_of(texts: tuple[str, ...]) -> re.Pattern[str]:
    """Matches one of some texts, the longest first."""
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))))


def _calls(action: Action) -> list[tuple[str, dict[str, object]]] | None:
    """The names and arguments of an action without text besides thinking; None for other actions."""
    calls = [(call.name, dict(call.arguments)) for call in action.calls if isinstance(call, ToolCall)]
    return calls if len(action.calls) == len(calls) and not answer_of(action.text).strip() else None
