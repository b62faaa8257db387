"""Contexts: what of the past the policy reads before it acts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from bough.tree import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One past turn as it really happened.

    Attributes:
        observation: What was read.
        action: What was written, as text.
        tokens: What was written, as sampled (with the stop token, where one was sampled).
        marks: What the parser found in it besides the action.
    """

    observation: str
    action: str
    tokens: tuple[int, ...]
    marks: Mapping[str, object] = field(default_factory=dict[str, object])


@runtime_checkable
class Renderer(Protocol):
    """Turns text into tokens in a model's own format. A policy has one; contexts call it.

    What was sampled is spliced in token by token, never rendered or tokenised again.
    """

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """The tokens that end an action; sampling stops at, and keeps, the first of them."""
        ...

    def render(self, system: str, past: Sequence[Turn], observation: str) -> tuple[int, ...]:
        """A whole context anew, up to the point where the policy writes."""
        ...

    def extend(self, system: str, past: Sequence[Turn], observation: str) -> tuple[int, ...] | None:
        """What follows the last action of `past` when `observation` is read next, up to where the policy writes.

        Closes the action first when it has no stop token. None when the format cannot append (a chat template that
        rewrites earlier messages): the context must then be rendered anew, as an `EDIT`.
        """
        ...

    def write(self, action: str) -> tuple[int, ...]:
        """The tokens of an action that someone else than the policy wrote (a teacher), with a stop token."""
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without stop tokens and special marks."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUpdate:
    """What a context adds before the next action.

    Attributes:
        kind: `OBSERVATION` when `tokens` follow what was read so far, `EDIT` when they replace it.
        tokens: What the policy reads next.
    """

    kind: Kind
    tokens: tuple[int, ...]


@runtime_checkable
class Context(Protocol):
    """Chooses what the policy reads."""

    def extend(self, renderer: Renderer, system: str, past: Sequence[Turn], observation: str) -> ContextUpdate:
        """What is read before the next action, given every turn so far (at least one) and the new observation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The action found in what the policy wrote.

    Attributes:
        action: What the environment gets.
        well_formed: Whether the text had the form that was asked for.
        marks: What else was found, values that JSON can write; goes into the info of the `ACTION` node.
        spans: Where the parts of the text stand, as ranges of characters. The info of the node has them under "spans"
            as ranges of tokens: those that hold some of the characters, so that two parts may share one.
    """

    action: str
    well_formed: bool
    marks: Mapping[str, object] = field(default_factory=dict[str, object])
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@runtime_checkable
class Parser(Protocol):
    """Finds the action in what the policy wrote. Never fails: text without the right form still gives an action.

    A parser that finds more than the action declares it in a constant `gives`, as `frozenset({annotation("NAME")})` of
    `bough.tree.needs`, with the names in `Parsed.marks` and `Parsed.spans`.
    """

    def __call__(self, text: str) -> Parsed:
        """Parse the whole text of one turn."""
        ...


@runtime_checkable
class PromptedParser(Parser, Protocol):
    """A parser of answers in a form that has to be asked for, and in which a demonstration has to be written."""

    @property
    def instructions(self) -> str:
        """What the agent is told of the form, after what the environment tells it."""
        ...

    def write(self, action: str, past: Sequence[Turn], ahead: Sequence[str]) -> str:
        """The text of a turn in which someone else than the policy (a teacher) acts.

        Args:
            action: What it does.
            past: The turns before.
            ahead: What it means to do from here on, `action` first.
        """
        ...


def full_instructions(instructions: str, parser: Parser) -> str:
    """What the agent is told first: the environment's instructions, then the form of its answers."""
    return f"{instructions}\n{parser.instructions}".strip() if isinstance(parser, PromptedParser) else instructions


# The pieces need the protocols above.
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
