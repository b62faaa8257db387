"""Finds the format of a chat template's calls."""

from collections.abc import Iterable, Mapping

from bough.policy.calls.families import FAMILIES, Family
from bough.policy.calls.format import CallFormat
from bough.policy.calls.thinking import CLOSE
from bough.tree import Action, ToolCall

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
    found = [each for each in families if _calls(each.form.parse(text)) == _calls(action)]
    exact = [sum(each.form.write(action) == text for text, action in written.items()) for each in found]
    return found[exact.index(max(exact))] if found else None


def family_by_marks(template: str, call: str = "") -> Family | None:
    """Returns the family whose marks a template contains; of several, the one with the longest marks.

    Args:
        template: The text of the template.
        call: What it writes of a call; one that it writes has the mark of its family.
    """
    found = [each for each in FAMILIES if each.template_marks and all(mark in template for mark in each.template_marks)]
    if PROBE_NAME in call:
        found = [each for each in found if any(mark in call for mark in each.form.marks)]
    return max(found, key=lambda each: len("".join(each.template_marks)), default=None)


def family_name(form: CallFormat) -> str:
    """The name of a format's family; that of its class where it is in no row."""
    return next((each.name for each in FAMILIES if each.form == form), type(form).__name__)


def foreign_family(text: str, form: CallFormat) -> Family | None:
    """Returns the family whose mark of a call a text has, which is not one of a format's own."""
    others = [each for each in FAMILIES if not {*each.form.marks} & {*form.marks}]
    return next((each for each in others if any(mark in text for mark in each.form.marks)), None)


def _calls(action: Action) -> list[tuple[str, dict[str, object]]] | None:
    """The names and arguments of an action without text besides thinking; None for other actions."""
    calls = [(call.name, dict(call.arguments)) for call in action.calls if isinstance(call, ToolCall)]
    return calls if len(action.calls) == len(calls) and not action.text.rpartition(CLOSE)[2].strip() else None
