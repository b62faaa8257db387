"""Contexts: the part of the history in the policy's prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from bough.tree import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One past turn as executed.

    Attributes:
        observation: The observation before the action.
        action: The action's text.
        tokens: The sampled tokens (with the stop token, if sampled).
        marks: Further results of the parser.
    """

    observation: str
    action: str
    tokens: tuple[int, ...]
    marks: Mapping[str, object] = field(default_factory=dict[str, object])


@runtime_checkable
class Renderer(Protocol):
    """Renders text as tokens in a model's own format. A policy has one; contexts call it.

    Sampled tokens are spliced in as they are, never rendered or tokenised again.
    """

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """The tokens that end an action; sampling stops at the first of them and keeps it."""
        ...

    def render(self, system: str, past: Sequence[Turn], observation: str) -> tuple[int, ...]:
        """Renders a whole context, up to the first token of the next action."""
        ...

    def extend(self, system: str, past: Sequence[Turn], observation: str) -> tuple[int, ...] | None:
        """Returns the tokens between the last action of `past` and the next action, with `observation` between them.

        Closes the action first when it has no stop token. `past` has at least one turn. None when the format cannot
        append (a chat template that rewrites earlier messages): the context must then be rendered again, as an `EDIT`.
        """
        ...

    def write(self, action: str) -> tuple[int, ...]:
        """Returns the tokens of an action that the policy did not sample (a teacher's), with a stop token."""
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """Decodes tokens, without stop tokens and special marks."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUpdate:
    """The tokens that a context adds before the next action.

    Attributes:
        kind: `OBSERVATION` when `tokens` extend the context, `EDIT` when they replace it. The first prompt replaces
            an empty context.
        tokens: The added tokens.
    """

    kind: Kind
    tokens: tuple[int, ...]


@runtime_checkable
class Context(Protocol):
    """Selects the history in the policy's prompt."""

    def extend(self, renderer: Renderer, system: str, past: Sequence[Turn], observation: str) -> ContextUpdate:
        """Returns the update before the next action, given every turn so far and the observation.

        Without turns the update is the first prompt.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The action parsed from a completion.

    Attributes:
        action: The action for the environment.
        well_formed: Whether the text has the required format.
        marks: Further results, values that JSON can write; stored in the info of the `ACTION` node.
        spans: The parts of the text, as ranges of characters. The info of the node has them under "spans"
            as ranges of the tokens that overlap those characters, so two parts may share a token.
    """

    action: str
    well_formed: bool
    marks: Mapping[str, object] = field(default_factory=dict[str, object])
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@runtime_checkable
class Parser(Protocol):
    """Parses the action from a completion. Never fails: text in another format still gives an action.

    A parser that finds more than the action declares it in a constant `gives`, as `frozenset({annotation("NAME")})` of
    `bough.tree.needs`, with the names in `Parsed.marks` and `Parsed.spans`.
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


def full_instructions(instructions: str, parser: Parser) -> str:
    """Returns the system prompt: the environment's instructions, then those of the parser's format."""
    return f"{instructions}\n{parser.instructions}".strip() if isinstance(parser, PromptedParser) else instructions


# Imported last: the pieces import the protocols above.
from bough.context.full import Full  # noqa: E402
from bough.context.parse import Plain, Tagged  # noqa: E402
from bough.context.plan import PlanAct, Planned  # noqa: E402
from bough.context.window import Window  # noqa: E402

__all__ = [
    "Context",
    "ContextUpdate",
    "PromptedParser",
    "Full",
    "Parsed",
    "Parser",
    "Plain",
    "PlanAct",
    "Planned",
    "Renderer",
    "Tagged",
    "Turn",
    "Window",
    "full_instructions",
]
