"""A parser: an action from the text of a turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, cast, runtime_checkable

from bough.context.context import Renderer, Turn
from bough.grammar import Grammar
from bough.tree import Action, AgentAction, Tool, action_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The action parsed from a completion.

    Attributes:
        action: The action for the environment: a text, or an `Action` from a `CallParser`.
        well_formed: Whether the text has the required format.
        marks: Further results, values that JSON can write; stored in the info of the `ACTION` node.
        spans: The parts of the text, as ranges of characters. The info of the node has them under "spans"
            as ranges of the tokens that overlap those characters, so two parts may share a token.
    """

    action: AgentAction
    well_formed: bool
    marks: Mapping[str, object] = field(default_factory=dict[str, object])
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def text(self) -> str:
        """The action as text, with its calls."""
        return action_text(self.action)


@runtime_checkable
class Parser(Protocol):
    """Parses the action from a completion. Never fails: text in another format still gives an action.

    A parser that finds more than the action declares it in a constant `gives`, as `frozenset({annotation("NAME")})` of
    `bough.needs`, with the names in `Parsed.marks` and `Parsed.spans`.
    """

    def __call__(self, text: str) -> Parsed:
        """Parses the whole text of one turn."""
        ...


@runtime_checkable
class PromptedParser(Parser, Protocol):
    """A parser whose format needs instructions in the prompt; it also writes demonstrations in this format."""

    @property
    def instructions(self) -> str:
        """The format instructions, appended to those of the environment."""
        ...

    def write(self, action: str, past: Sequence[Turn], ahead: Sequence[str]) -> str:
        """Returns the text of a demonstrated turn.

        Args:
            action: The teacher's action.
            past: The turns before.
            ahead: The teacher's planned actions, `action` first.
        """
        ...


@runtime_checkable
class CallParser(Parser, Protocol):
    """A parser of calls of tools, which the renderer finds in the format of the model's family."""

    def read(self, action: Action) -> Parsed:
        """Returns the result for an action that `Renderer.parse` parsed."""
        ...


@runtime_checkable
class GrammarParser(Parser, Protocol):
    """A parser that restricts the sampled tokens; it needs an engine that follows grammars (`bough.needs.GRAMMARS`)."""

    def restrict(self, renderer: Renderer, tools: Sequence[Tool], admissible: Sequence[str]) -> Grammar | None:
        """Returns what the text of a turn may be; None for anything.

        Args:
            renderer: The renderer of the policy's format.
            tools: The tools of the state.
            admissible: Its valid actions; empty where the environment does not list them.
        """
        ...


def grammar_of(parser: Parser, renderer: Renderer, tools: Sequence[Tool], admissible: Sequence[str]) -> Grammar | None:
    """Returns what the text of a turn may be; None for anything."""
    if not _restricts(type(parser)):
        return None
    return cast("GrammarParser", parser).restrict(renderer, tools, admissible)


@lru_cache(maxsize=64)
def _restricts(kind: type[Parser]) -> bool:
    return issubclass(kind, GrammarParser)


def parse_tokens(parser: Parser, renderer: Renderer, tokens: Sequence[int], tools: Sequence[Tool] = ()) -> Parsed:
    """Parses the tokens of one turn in a state with some tools."""
    if _reads_calls(type(parser)):
        return cast("CallParser", parser).read(renderer.parse(tokens, tools))
    return parser(renderer.text(tokens))


def as_written(parser: Parser, action: AgentAction) -> AgentAction:
    """Returns an action as a renderer writes it for a parser: one for a parser of calls is an `Action`."""
    return Action(text=action) if isinstance(action, str) and _reads_calls(type(parser)) else action


@lru_cache(maxsize=64)
def _reads_calls(kind: type[Parser]) -> bool:
    # Once a class, not once a turn: the check of a protocol takes longer than the parsing of a short text.
    return issubclass(kind, CallParser)


def full_instructions(instructions: str, parser: Parser) -> str:
    """Returns the system prompt: the environment's instructions, then those of the parser's format."""
    return f"{instructions}\n{parser.instructions}".strip() if isinstance(parser, PromptedParser) else instructions
