"""Settings of linear value heads on the policy's hidden states."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bough.needs import CRITIC, FINAL_VALUES, Need, value_head

if TYPE_CHECKING:
    import bough.critics.critic


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueHead:
    """Linear heads on the policy's last hidden states, trained jointly by a value loss (`ValueClip`).

    Before the first update every value is 0.

    Attributes:
        heads: A name for each head: "value" for a single critic; "low", "high" and "switch" for a hierarchical one.
        learning_rate: The heads' learning rate; follows the optimizer's schedule.
        detach: Whether the value loss has no gradient in the policy's weights.
    """

    heads: tuple[str, ...] = ("value",)
    learning_rate: float = 1e-3
    detach: bool = False

    def __post_init__(self) -> None:
        if not self.heads or len(set(self.heads)) < len(self.heads):
            raise ValueError(f"ValueHead.heads: got {self.heads}; need at least one name, each once")
        if not self.learning_rate > 0:
            raise ValueError(f"ValueHead.learning_rate: got {self.learning_rate}; need a number above 0")

    @property
    def gives(self) -> frozenset[Need]:
        """Values by head, of final states too."""
        return frozenset({CRITIC, FINAL_VALUES, *map(value_head, self.heads)})

    def build(self, width: int) -> "bough.critics.critic.Critic":
        """Heads on hidden states of `width` elements."""
        from bough.critics.critic import Critic

        return Critic(self, width)
