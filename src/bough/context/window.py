"""A context with the last few turns."""

from dataclasses import dataclass

from bough.context.context import ContextInputs, ContextUpdate, Renderer
from bough.context.full import Full
from bough.tree import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The system prompt and the last `turns` turns are in the prompt, the current observation included.

    While everything fits, observations extend the context. After that each turn is an edit: the turns in the window
    are rendered again, with their actions as sampled. With `turns=1` the prompt has the current observation
    alone.

    Attributes:
        turns: Number of observations in the window, >= 1.
    """

    turns: int

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise ValueError(f"Window.turns: got {self.turns}; need at least 1, the current observation")

    def extend(self, renderer: Renderer, inputs: ContextInputs) -> ContextUpdate:
        """See `Context.extend`."""
        if len(inputs.past) < self.turns:
            return Full().extend(renderer, inputs)
        view = inputs.past[len(inputs.past) - self.turns + 1 :]
        tokens = renderer.render(inputs.conversation(view), inputs.tools)
        return ContextUpdate(kind=Kind.EDIT, tokens=tokens)
