"""The entropy bonus."""

from typing import ClassVar

from bough.needs import ENTROPY, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.piece import piece


@piece
class Entropy:
    """A bonus on the entropy of the policy's predictions (A3C, arXiv 1602.01783).

    Metrics: `entropy`, nats, weighted by `metric_weight`. A coefficient of 0 only reports it.

    Attributes:
        coefficient: Factor on the bonus; a negative one gives a penalty.
    """

    regularises: ClassVar[bool] = True

    coefficient: float = 0.001

    @property
    def needs(self) -> frozenset[Need]:
        """The entropies."""
        return frozenset({ENTROPY})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes minus the bonus.

        Raises:
            ValueError: when `columns.entropy` is missing.
        """
        if columns.entropy is None:
            raise ValueError("Entropy: got columns without `entropy`; need the entropy of each prediction")
        total = (columns.loss_weight * columns.entropy).sum()
        return Loss(value=-self.coefficient * total, metrics={"entropy": total.detach() * columns.metric_scale})
