"""A parser of thinking and calls of tools."""

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from bough.context.parser import Parsed
from bough.context.tool_calls import ToolCalls
from bough.needs import CALLS_TAKEN, Need, annotation
from bough.tree import Action

THOUGHT = re.compile(r"\s*(?:<think>)?(.*?)</think>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingCalls:
    """As `ToolCalls`, with the thinking before the calls annotated: the text up to `</think>`.

    Span: "thought", the range of the thinking without its tags. An answer without `</think>` has none.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS_TAKEN})

    gives: ClassVar[frozenset[Need]] = ToolCalls.gives | {annotation("thought")}

    def __call__(self, text: str) -> Parsed:
        """See `Parser`: a turn without calls."""
        return self.read(Action(text=text.strip()))

    def read(self, action: Action) -> Parsed:
        """See `CallParser`."""
        found, thought = ToolCalls().read(action), THOUGHT.match(action.text)
        spans = {"thought": thought.span(1)} if thought and thought[1] else {}
        return replace(found, spans={**found.spans, **spans})
