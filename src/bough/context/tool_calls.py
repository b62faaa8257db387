"""A parser of calls of tools."""

from dataclasses import dataclass
from typing import ClassVar

from bough.context.parser import Parsed
from bough.tree import Action, BadCall
from bough.tree.needs import CALLS, CALLS_TAKEN, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls:
    """The action is the text and its calls of tools, in the format of the model's family.

    Not well formed when a part begins like a call and is none (`BadCall`). Text alone is well formed.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS_TAKEN})

    gives: ClassVar[frozenset[Need]] = frozenset({CALLS})

    def __call__(self, text: str) -> Parsed:
        """See `Parser`: a turn without calls."""
        return self.read(Action(text=text.strip()))

    def read(self, action: Action) -> Parsed:
        """See `CallParser`."""
        return Parsed(action=action, well_formed=not any(isinstance(call, BadCall) for call in action.calls))
