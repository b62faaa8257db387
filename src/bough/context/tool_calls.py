"""A parser of calls of tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from bough.context.context import Renderer
from bough.context.parser import Parsed
from bough.grammar import Grammar
from bough.needs import CALLS, CALLS_TAKEN, GRAMMARS, Need, annotation
from bough.tree import Action, BadCall, Tool, ToolCall


@runtime_checkable
class HasCallGrammar(Protocol):
    """A renderer that makes the grammar of an action with calls."""

    def call_grammar(
        self,
        tools: Sequence[Tool],
        *,
        required: bool = False,
        most_calls: int | None = None,
        answer: Mapping[str, object] | None = None,
    ) -> Grammar:
        """Returns what an action may be so that each of its calls is one that its tool takes.

        Args:
            tools: The tools; at least one.
            required: Whether it is calls alone, after thinking that the prompt opens.
            most_calls: 1 for one call, None for any number.
            answer: The schema of a JSON text that may stand in place of required calls; None for none.

        Raises:
            ValueError: for a format whose calls can't be enforced.
        """
        ...


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
        if not isinstance(renderer, HasCallGrammar):
            raise ValueError(f"ToolCalls.grammar: got {type(renderer).__name__}, which has none; set grammar=False")
        return renderer.call_grammar(tools)

    def __call__(self, text: str) -> Parsed:
        """See `Parser`: a turn without calls."""
        return self.read(Action(text=text.strip()))

    def read(self, action: Action) -> Parsed:
        """See `CallParser`."""
        well_formed, after = not any(isinstance(call, BadCall) for call in action.calls), len(action.text)
        if not any(isinstance(call, ToolCall) for call in action.calls):
            return Parsed(action=action, well_formed=well_formed)
        return Parsed(action=action, well_formed=well_formed, marks={"call": True}, spans={"call": (after, after + 1)})
