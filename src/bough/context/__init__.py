"""Contexts: what of the past the policy reads before it acts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bough.tree import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One past turn as it really happened.

    Attributes:
        observation: What was read.
        action: What was written, as text.
        tokens: What was written, as sampled (with the stop token, where one was sampled).
    """

    observation: str
    action: str
    tokens: tuple[int, ...]


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
class Extension:
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

    def extend(self, renderer: Renderer, system: str, past: Sequence[Turn], observation: str) -> Extension:
        """What is read before the next action, given every turn so far (at least one) and the new observation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The action found in what the policy wrote.

    Attributes:
        action: What the environment gets.
        well_formed: Whether the text had the form that was asked for.
    """

    action: str
    well_formed: bool


@runtime_checkable
class Parser(Protocol):
    """Finds the action in what the policy wrote. Never fails: text without the right form still gives an action."""

    def __call__(self, text: str) -> Parsed:
        """Parse the whole text of one turn."""
        ...


# The pieces need the protocols above.
from bough.context.full import Full  # noqa: E402
from bough.context.parse import Plain, Tagged  # noqa: E402
from bough.context.window import Window  # noqa: E402

__all__ = ["Context", "Extension", "Full", "Parsed", "Parser", "Plain", "Renderer", "Tagged", "Turn", "Window"]
