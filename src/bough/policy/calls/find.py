"""Finds the format of a chat template's calls."""

from bough.policy.calls.format import CallFormat
from bough.policy.calls.hermes import Hermes
from bough.policy.calls.llama import Llama
from bough.policy.calls.mistral import Mistral
from bough.policy.calls.objects import split_thinking
from bough.policy.calls.pythonic import Pythonic
from bough.tree import Action, ToolCall

FORMATS: tuple[CallFormat, ...] = (Mistral(), Hermes(), Llama(), Pythonic())


def find_format(text: str, call: ToolCall) -> CallFormat | None:
    """Returns the format that parses a template's text of `call` to this call; None for an unknown format."""
    return next((each for each in FORMATS if _only(each.parse(text)) == (call.name, dict(call.arguments))), None)


def _only(action: Action) -> tuple[str, dict[str, object]] | None:
    """The name and arguments of an action that is one call."""
    calls = [(call.name, dict(call.arguments)) for call in action.calls if isinstance(call, ToolCall)]
    return calls[0] if len(action.calls) == len(calls) == 1 and not split_thinking(action.text)[1] else None
