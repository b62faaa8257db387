"""OPMD: policy mirror descent without a ratio."""

from typing import Annotated

from bough.needs import Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.piece import AtLeast, piece


@piece
class Opmd:
    """OPMD (Kimi k1.5, arXiv 2501.12599, as in Trinity-RFT, 2505.17826): mirror descent; REINFORCE over 1 + T.

        loss = - sum loss_weight * A * log p / (1 + temperature)

    There is no ratio and no clipping: tokens of an older policy count as the policy's own. The
    temperature is the strength of the pull to the policy before the update. Of the variants in the release this is
    the simple one; its advantage is the reward minus the mean of its group.

    At temperature 1, advantages 1 and -1 over five tokens have gradients of -.1 and .1.

    Metrics: `surrogate`, minus the loss.

    Attributes:
        temperature: >= 0.
    """

    temperature: Annotated[float, AtLeast(0)] = 1.0

    @property
    def needs(self) -> frozenset[Need]:
        """No optional columns."""
        return frozenset()

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        total = (columns.loss_weight * columns.advantage * columns.logprob).sum() / (1 + self.temperature)
        return Loss(value=-total, metrics={"surrogate": total.detach() * columns.metric_scale})
