"""The clipped value loss of a critic."""

from typing import Annotated

from bough.lazy import Tensor, torch
from bough.needs import CRITIC, Need, value_head
from bough.objective.inputs import LossInputs, ValueInputs
from bough.objective.objective import Loss
from bough.piece import Above, AtLeast, piece


@piece
class ValueClip:
    """PPO's critic loss (arXiv 1707.06347): squared error to the target, clipped; needs a rule with value targets.

    With v a head's value before a token, v_old its value before the update, g its target:

        loss = coefficient * mean of max((v - g)^2, (v_old + clamp(v - v_old, -clip, clip) - g)^2)

    The mean is over the tokens with a target, weighted by `loss_weight` as in the other losses, and is summed over
    heads. A value that already moved further than `clip` toward its target has no gradient. A critic may use the
    policy's own hidden states, so this loss trains the policy too (`ValueHead.detach`).

    PPO's formula clips by the epsilon of the policy's ratio; verl clips by 0.5 with a coefficient of 0.5, as here. The
    range is in units of the return.

    Metrics, each a mean over tokens with a target, by head, here "value": `value_error`, squared; `value_bias`, target
    minus value; `value_goal` and `value_goal_square`; `value_clipped`. Explained variance is
    1 - (error - bias^2) / (goal_square - goal^2).

    Attributes:
        coefficient: Factor on the loss, >= 0.
        clip: Largest change of a value in the update, > 0; None for no bound.
        heads: The trained heads; () for all.
    """

    coefficient: Annotated[float, AtLeast(0, "0 or more")] = 0.5
    clip: Annotated[float | None, Above(0)] = 0.5
    heads: tuple[str, ...] = ()

    @property
    def needs(self) -> frozenset[Need]:
        """The values of the heads and their targets."""
        return frozenset({CRITIC, *map(value_head, self.heads)})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss.

        Raises:
            ValueError: when a name in `heads` has no head, or there is no head at all.
        """
        names = self.heads or tuple(columns.values)
        if not names or not columns.values.keys() >= set(names):
            raise ValueError(
                f"ValueClip.heads: got {list(names)} and a critic with {sorted(columns.values)}; need heads that it has"
            )
        losses: list[Tensor] = []
        metrics: dict[str, Tensor] = {}
        for name in names:
            loss, head_metrics = self._of_head(columns.values[name], columns.loss_weight)
            losses.append(loss)
            metrics |= {f"{name}_{what}": number.detach() for what, number in head_metrics.items()}
        return Loss(value=self.coefficient * torch.stack(losses).sum(), metrics=metrics)

    def _of_head(self, head: ValueInputs, loss_weight: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the mean over the tokens with a target, and the metrics."""
        known = ~head.target.isnan()
        value, old, goal = head.value[known], head.old[known], head.target[known]
        loss_weight = loss_weight[known] * head.scale
        error = (value - goal).square()
        worst = error
        if self.clip is not None:
            # Without an old value the clip has no centre.
            old = old.where(~old.isnan(), value.detach())
            worst = error.maximum((old + (value - old).clamp(-self.clip, self.clip) - goal).square())
        head_metrics = {
            "error": (loss_weight * error).sum(),
            "bias": (loss_weight * (goal - value)).sum(),
            "goal": (loss_weight * goal).sum(),
            "goal_square": (loss_weight * goal.square()).sum(),
        }
        if self.clip is not None:
            head_metrics["clipped"] = loss_weight[worst > error].sum()
        return (loss_weight * worst).sum(), head_metrics
