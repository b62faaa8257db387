"""Behaviour cloning."""

import math
from dataclasses import dataclass

from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss
from bough.tree.needs import REVISED_PATHS, TEACHER_TURNS, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Imitation:
    """Behaviour cloning (Pomerleau 1991): negative log-likelihood, advantage-weighted; needs positive advantages.

    Demonstrations have an advantage of 1. Negative advantages have no effect.

    Metrics: `imitation_nll`, nats, weighted by `loss_weight` and the positive advantage, before the coefficient.

    Attributes:
        coefficient: Factor on the loss, >= 0.
    """

    coefficient: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.coefficient < math.inf:
            raise ValueError(f"Imitation.coefficient: got {self.coefficient}; need 0 or more")

    @property
    def needs(self) -> frozenset[Need]:
        """No optional columns."""
        return frozenset()

    @property
    def gives(self) -> frozenset[Need]:
        """It imitates a token whatever policy sampled it."""
        return frozenset({TEACHER_TURNS, REVISED_PATHS})

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss."""
        total = -(columns.loss_weight * columns.positive * columns.logprob).sum()
        return Loss(value=self.coefficient * total, metrics={"imitation_nll": total.detach()})
