"""A context with the last few turns."""

from typing import Annotated

from bough.context.context import ContextInputs, ContextUpdate, Renderer
from bough.context.full import Full
from bough.piece import AtLeast, piece
from bough.tree import Kind


@piece
class Window:
    """The system prompt and the last `turns` turns are in the prompt, the current observation included.

    While everything fits, observations extend the context. After that each turn is an edit: the turns in the window
    are rendered again, with their actions as sampled. With `turns=1` the prompt has the current observation
    alone.

    Attributes:
        turns: Number of observations in the window, >= 1.
    """

    turns: Annotated[int, AtLeast(1, "at least 1, the current observation")]

    def extend(self, renderer: Renderer, inputs: ContextInputs) -> ContextUpdate:
        """See `Context.extend`."""
        if len(inputs.past) < self.turns:
            return Full().extend(renderer, inputs)
        view = inputs.past[len(inputs.past) - self.turns + 1 :]
        tokens = renderer.render(inputs.conversation(view), inputs.tools)
        return ContextUpdate(kind=Kind.EDIT, tokens=tokens)
