"""The sum of several objectives."""

from collections.abc import Sequence
from functools import reduce
from typing import Annotated

from bough.lazy import Tensor, torch
from bough.needs import SEPARATE_DEMONSTRATIONS, Need, gives_of
from bough.objective.inputs import LossInputs
from bough.objective.objective import Loss, Objective, compute_loss
from bough.piece import NotEmpty, piece


@piece
class Sum:
    """The sum of objectives, for example `Sum(terms=(PpoClip(high=0.28), Kl(coefficient=0.001)))`.

    Metrics: those of the terms.

    Attributes:
        terms: The summed objectives, at least one.
    """

    terms: Annotated[tuple[Objective, ...], NotEmpty("at least one objective")]

    @property
    def needs(self) -> frozenset[Need]:
        """Nothing itself."""
        return frozenset()

    @property
    def gives(self) -> frozenset[Need]:
        """What each term gives; if a term separates demonstrations, what it gives."""
        given = [gives_of(term) for term in self.terms]
        separate = [each for each in given if SEPARATE_DEMONSTRATIONS in each]
        return reduce(lambda one, other: one & other, separate or given)

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the sum.

        Raises:
            ValueError: when two terms report a metric of the same name.
        """
        losses = [compute_loss(term, columns) for term in self.terms]
        metrics: dict[str, Tensor] = {}
        for loss in losses:
            if clash := metrics.keys() & loss.metrics.keys():
                raise ValueError(f"Sum: got two terms that report {sorted(clash)}; need a name of its own for each")
            metrics.update(loss.metrics)
        return Loss(value=torch.stack([loss.value for loss in losses]).sum(), metrics=metrics)


def add(objective: Objective, terms: Sequence[Objective]) -> Objective:
    """Returns the sum of an objective and further terms; the objective itself when there are none."""
    if not terms:
        return objective
    return Sum(terms=(*(objective.terms if isinstance(objective, Sum) else (objective,)), *terms))
