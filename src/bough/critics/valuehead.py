"""Settings of linear value heads on the policy's hidden states."""

from typing import TYPE_CHECKING, Annotated

from bough.needs import CRITIC, FINAL_VALUES, Need, value_head
from bough.piece import Above, NotEmpty, piece

if TYPE_CHECKING:
    import bough.critics.critic


@piece
class ValueHead:
    """Linear heads on the policy's last hidden states, trained jointly by a value loss (`ValueClip`).

    Before the first update every value is 0.

    Attributes:
        heads: A name for each head: "value" for a single critic; "low", "high" and "switch" for a hierarchical one.
        learning_rate: The heads' learning rate; follows the optimizer's schedule.
        detach: Whether the value loss has no gradient in the policy's weights.
    """

    heads: Annotated[tuple[str, ...], NotEmpty("at least one name, each once", different=True)] = ("value",)
    learning_rate: Annotated[float, Above(0)] = 1e-3
    detach: bool = False

    @property
    def gives(self) -> frozenset[Need]:
        """Values by head, of final states too."""
        return frozenset({CRITIC, FINAL_VALUES, *map(value_head, self.heads)})

    def build(self, width: int) -> "bough.critics.critic.Critic":
        """Heads on hidden states of `width` elements."""
        from bough.critics.critic import Critic

        return Critic(self, width)
