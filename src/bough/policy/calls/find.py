"""Finds the format of a chat template's calls."""

from bough.policy.calls.format import CallFormat
from bough.policy.calls.hermes import Hermes
from bough.policy.calls.llama import Llama
from bough.policy.calls.mistral import Mistral
from bough.policy.calls.pythonic import Pythonic
from bough.policy.calls.thinking import CLOSE
from bough.tree import Action, ToolCall

FORMATS: tuple[CallFormat, ...] = (
    *(Mistral(), Mistral(space=""), Mistral(named=True), Mistral(named=True, ids=True)),
    *(Hermes(), Llama()),
    *(Pythonic(), Pythonic(start="<|tool_call_start|>", end="<|tool_call_end|>")),
)


def find_format(text: str, call: ToolCall) -> CallFormat | None:
    """Returns the format of a template's text of `call`; None for an unknown format.

    Of the formats that parse the text to the call, it is the one that writes the same text, else the first.
    """
    found = [each for each in FORMATS if _only(each.parse(text)) == (call.name, dict(call.arguments))]
    return next((each for each in found if each.write(Action(calls=(call,))) == text), found[0] if found else None)


def _only(action: Action) -> tuple[str, dict[str, object]] | None:
    """The name and arguments of an action that is one call, after any thinking."""
    calls = [(call.name, dict(call.arguments)) for call in action.calls if isinstance(call, ToolCall)]
    return calls[0] if len(action.calls) == len(calls) == 1 and not action.text.rpartition(CLOSE)[2] else None
