"""A parser of thinking and calls of tools."""

from dataclasses import dataclass, replace
from typing import ClassVar

from bough.context.parser import Parsed
from bough.context.tool_calls import ToolCalls
from bough.needs import CALLS_TAKEN, Need, annotation
from bough.tree import Action
from bough.tree.thinking import ThinkingState, split_thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingCalls:
    """As `ToolCalls`, with the thinking before the calls annotated: the text up to `</think>`.

    Span: "thought", the range of the thinking without its tags. An answer without `</think>`, or with empty thinking,
    has none.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS_TAKEN})

    gives: ClassVar[frozenset[Need]] = ToolCalls.gives | {annotation("thought")}

    def __call__(self, text: str) -> Parsed:
        """See `Parser`: a turn without calls."""
        return self.read(Action(text=text.strip()))

    def read(self, action: Action) -> Parsed:
        """See `CallParser`."""
        # A model may end thinking that it did not begin.
        found, thought = ToolCalls().read(action), split_thinking(action.text, opened=True)
        if thought.state is not ThinkingState.CLOSED:
            return found
        span = thought.begin, thought.begin + len(thought.content)
        return replace(found, spans={**found.spans, "thought": span})
