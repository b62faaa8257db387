"""A context with the whole history."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.context.context import ContextUpdate, Renderer, Turn
from bough.tree import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """The whole history is in the prompt; each observation extends the context.

    When the model's format rewrites earlier turns, each observation is an edit.
    """

    def extend(self, renderer: Renderer, system: str, past: Sequence[Turn], observation: str) -> ContextUpdate:
        """See `Context.extend`."""
        suffix = renderer.extend(system, past, observation) if past else None
        if suffix is not None:
            return ContextUpdate(kind=Kind.OBSERVATION, tokens=suffix)
        return ContextUpdate(kind=Kind.EDIT, tokens=renderer.render(system, past, observation))
