"""A context with the whole history."""

from dataclasses import dataclass

from bough.context.context import ContextInputs, ContextUpdate, Renderer
from bough.tree import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """The whole history is in the prompt; each observation extends the context.

    When the model's format rewrites earlier turns, each observation is an edit; so is one after which the tools differ.
    """

    def extend(self, renderer: Renderer, inputs: ContextInputs) -> ContextUpdate:
        """See `Context.extend`."""
        messages = inputs.conversation()
        appends = bool(inputs.past) and inputs.past[-1].tools == inputs.tools
        suffix = renderer.extend(messages, inputs.tools) if appends else None
        if suffix is not None:
            return ContextUpdate(kind=Kind.OBSERVATION, tokens=suffix)
        return ContextUpdate(kind=Kind.EDIT, tokens=renderer.render(messages, inputs.tools))
