"""A parser of calls of tools."""

from dataclasses import dataclass
from typing import ClassVar

from bough.context.parser import Parsed
from bough.needs import CALLS, CALLS_TAKEN, Need, annotation
from bough.tree import Action, BadCall, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls:
    """The action is the text and its calls of tools, in the format of the model's family.

    Not well formed when a part begins like a call and is none (`BadCall`). Text alone is well formed.

    A turn with a call has the annotation "call", and the span of that name begins after the text.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS_TAKEN})

    gives: ClassVar[frozenset[Need]] = frozenset({CALLS, annotation("call")})

    def __call__(self, text: str) -> Parsed:
        """See `Parser`: a turn without calls."""
        return self.read(Action(text=text.strip()))

    def read(self, action: Action) -> Parsed:
        """See `CallParser`."""
        well_formed, after = not any(isinstance(call, BadCall) for call in action.calls), len(action.text)
        if not any(isinstance(call, ToolCall) for call in action.calls):
            return Parsed(action=action, well_formed=well_formed)
        return Parsed(action=action, well_formed=well_formed, marks={"call": True}, spans={"call": (after, after + 1)})
