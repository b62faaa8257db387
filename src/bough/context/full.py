"""A context with the whole history."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.context.context import ContextUpdate, Renderer, Turn, conversation
from bough.tree import Kind, Observation, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """The whole history is in the prompt; each observation extends the context.

    When the model's format rewrites earlier turns, each observation is an edit; so is one after which the tools differ.
    """

    def extend(
        self,
        renderer: Renderer,
        system: str,
        past: Sequence[Turn],
        observation: Observation,
        tools: Sequence[Tool] = (),
    ) -> ContextUpdate:
        """See `Context.extend`."""
        messages = conversation(system, past, observation)
        appends = bool(past) and past[-1].tools == tuple(tools)
        suffix = renderer.extend(messages, tools) if appends else None
        if suffix is not None:
            return ContextUpdate(kind=Kind.OBSERVATION, tokens=suffix)
        return ContextUpdate(kind=Kind.EDIT, tokens=renderer.render(messages, tools))
