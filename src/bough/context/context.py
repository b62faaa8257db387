"""A context: what of an episode the model reads at a turn."""

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
