"""Behaviour cloning."""

from typing import Annotated, Literal

from bough.needs import DEMONSTRATIONS, REVISED_PATHS, TEACHER_TURNS, Need
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.piece import AtLeast, piece


@piece
class Imitation:
    """Behaviour cloning (Pomerleau 1991): negative log-likelihood, advantage-weighted; needs positive advantages.

    Demonstrations have an advantage of 1. Negative advantages have no effect.

    Metrics: `imitation_nll`, nats, weighted by `loss_weight` and the positive advantage, before the coefficient.

    Attributes:
        coefficient: Factor on the loss, >= 0.
        of: "all" tokens with a positive advantage, or those of "demonstrations" only.
    """

    coefficient: Annotated[float, AtLeast(0)] = 1.0
    of: Literal["all", "demonstrations"] = "all"

    @property
    def needs(self) -> frozenset[Need]:
        """Demonstrations, where only they are imitated."""
        return frozenset({DEMONSTRATIONS} if self.of == "demonstrations" else ())

    @property
    def gives(self) -> frozenset[Need]:
        """It imitates a token whatever policy sampled it."""
        return frozenset({TEACHER_TURNS, REVISED_PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss.

        Raises:
            ValueError: when only demonstrations are imitated and the columns do not mark them.
        """
        weight = columns.loss_weight * columns.positive
        if self.of == "demonstrations":
            if columns.expert is None:
                raise ValueError("Imitation: got columns without `expert`; need demonstrations in the run, or of='all'")
            weight = weight.where(columns.expert, 0.0)
        total = -(weight * columns.logprob).sum()
        return Loss(value=self.coefficient * total, metrics={"imitation_nll": total.detach()})
