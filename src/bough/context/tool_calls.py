"""A parser of calls of tools."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bough.context.context import Renderer
from bough.context.parser import Parsed
from bough.grammar import Grammar
from bough.needs import CALLS, CALLS_TAKEN, GRAMMARS, Need, annotation
from bough.tree import Action, BadCall, Tool, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls:
    """The action is the text and its calls of tools, in the format of the model's family.

    Not well formed when a part begins like a call and is none (`BadCall`). Text alone is well formed.

    A turn with a call has the annotation "call", and the span of that name begins after the text.

    Attributes:
        grammar: Whether calls that a tool does not take can't be sampled: names, arguments and their types. Training
            renormalises over what can. For calls as text (`Tiny`, SmolLM2) and in the format of Hermes and Qwen3.
    """

    gives: ClassVar[frozenset[Need]] = frozenset({CALLS, annotation("call")})

    grammar: bool = False

    @property
    def needs(self) -> frozenset[Need]:
        """An environment that takes calls; with a grammar, an engine that follows it."""
        return frozenset({CALLS_TAKEN, GRAMMARS} if self.grammar else {CALLS_TAKEN})

    def restrict(self, renderer: Renderer, tools: Sequence[Tool], admissible: Sequence[str]) -> Grammar | None:
        """See `GrammarParser`."""
        del admissible
        if not self.grammar or not tools:
            return None
        try:
            return renderer.call_grammar(tools)
        except ValueError as error:
            raise ValueError(f"ToolCalls.grammar: {error}; or set parser=ToolCalls(grammar=false)") from error

    def __call__(self, text: str) -> Parsed:
        """See `Parser`: a turn without calls."""
        return self.read(Action(text=text.strip()))

    def read(self, action: Action) -> Parsed:
        """See `CallParser`."""
        well_formed, after = not any(isinstance(call, BadCall) for call in action.calls), len(action.text)
        if not any(isinstance(call, ToolCall) for call in action.calls):
            return Parsed(action=action, well_formed=well_formed)
        return Parsed(action=action, well_formed=well_formed, marks={"call": True}, spans={"call": (after, after + 1)})
