"""Contexts: what of the past the policy reads before it acts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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


class Context(Protocol):
    """Chooses what the policy reads."""

    def extend(self, renderer: Renderer, system: str, past: Sequence[Turn], observation: str) -> Extension:
        """What is read before the next action, given every turn so far (at least one) and the new observation."""
        ...
