"""The last few turns."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.context import ContextUpdate, Renderer, Turn
from bough.context.full import Full
from bough.tree import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The policy reads the system prompt and the last `turns` turns, the present observation included.

    While everything fits, observations follow each other. From then on each turn is an edit: the turns still in view
    are rendered anew, with their actions as they were sampled. With `turns=1` the policy reads the present
    observation alone.

    Attributes:
        turns: Observations in view, >= 1.
    """

    turns: int

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise ValueError(f"Window.turns: got {self.turns}; need at least 1, the present observation")

    def extend(self, renderer: Renderer, system: str, past: Sequence[Turn], observation: str) -> ContextUpdate:
        """See `Context.extend`."""
        if len(past) < self.turns:
            return Full().extend(renderer, system, past, observation)
        view = past[len(past) - self.turns + 1 :]
        return ContextUpdate(kind=Kind.EDIT, tokens=renderer.render(system, view, observation))
