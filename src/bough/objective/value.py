"""The clipped value loss of a critic."""

import math
from dataclasses import dataclass

from bough.lazy import Tensor, torch
from bough.objective import Loss, LossInputs, Need, ValueInputs
from bough.tree.needs import CRITIC, value_head


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueClip:
    """PPO's critic loss (arXiv 1707.06347): squared error to the goal, clipped; needs a rule that sets goals.

    With v what a head says before a token, v_old what it said before the update, g what it should have said:

        loss = coefficient * mean of max((v - g)^2, (v_old + clamp(v - v_old, -clip, clip) - g)^2)

    The mean is over the tokens that have a goal, weighted by `loss_weight` as in the other losses, and is summed over
    heads. A value that already went further than `clip` toward its goal has no gradient. A critic may lie on the
    policy's own hidden states, so that this loss moves the policy too (`ValueHead.detach`).

    PPO's formula clips by the epsilon of the policy's ratio; verl clips by 0.5 with a coefficient of 0.5, as here. The
    range is in units of the return.

    Metrics, each a mean over tokens with a goal, by head, here "value": `value_error`, squared; `value_bias`, goal less
    value; `value_goal` and `value_goal_square`; `value_clipped`. Explained variance is
    1 - (error - bias^2) / (goal_square - goal^2).

    Attributes:
        coefficient: Multiplies the loss, >= 0.
        clip: How far a value may go from what it was, > 0; None for no bound.
        heads: Which heads; () for all that there are.
    """

    coefficient: float = 0.5
    clip: float | None = 0.5
    heads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.coefficient < math.inf:
            raise ValueError(f"ValueClip.coefficient: got {self.coefficient}; need 0 or more")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"ValueClip.clip: got {self.clip}; need a number above 0, or None")

    @property
    def needs(self) -> frozenset[Need]:
        """What the heads say and should have said."""
        return frozenset({CRITIC, *map(value_head, self.heads)})

    def __call__(self, columns: LossInputs) -> Loss:
        """The loss.

        Raises:
            ValueError: when there is no head of a name in `heads`, or none at all.
        """
        names = self.heads or tuple(columns.values)
        if not names or not columns.values.keys() >= set(names):
            raise ValueError(
                f"ValueClip.heads: got {list(names)} and a critic with {sorted(columns.values)}; need heads that it has"
            )
        losses: list[Tensor] = []
        metrics: dict[str, Tensor] = {}
        for name in names:
            loss, told = self._of_head(columns.values[name], columns.loss_weight)
            losses.append(loss)
            metrics |= {f"{name}_{what}": number.detach() for what, number in told.items()}
        return Loss(value=self.coefficient * torch.stack(losses).sum(), metrics=metrics)

    def _of_head(self, head: ValueInputs, loss_weight: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean over the tokens that have a goal, and what there is to report."""
        known = ~head.target.isnan()
        value, old, goal = head.value[known], head.old[known], head.target[known]
        loss_weight = loss_weight[known] * head.scale
        error = (value - goal).square()
        worst = error
        if self.clip is not None:
            # Without an old value there is nothing to stay near.
            old = old.where(~old.isnan(), value.detach())
            worst = error.maximum((old + (value - old).clamp(-self.clip, self.clip) - goal).square())
        told = {
            "error": (loss_weight * error).sum(),
            "bias": (loss_weight * (goal - value)).sum(),
            "goal": (loss_weight * goal).sum(),
            "goal_square": (loss_weight * goal.square()).sum(),
        }
        if self.clip is not None:
            told["clipped"] = loss_weight[worst > error].sum()
        return (loss_weight * worst).sum(), told
