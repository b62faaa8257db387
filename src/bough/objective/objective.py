"""An objective: a loss from the columns of a batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float

from bough.lazy import Tensor
from bough.objective.inputs import LossInputs
from bough.tree.needs import Need, pieces


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loss:
    """A loss and its metrics.

    Attributes:
        value: Scalar to minimise.
        metrics: Scalars without gradient, by name, each a `loss_weight`-weighted sum, so that micro-batches add up.
    """

    value: Float[Tensor, ""]
    metrics: Mapping[str, Float[Tensor, ""]]


@runtime_checkable
class Objective(Protocol):
    """A loss: a frozen dataclass whose fields are its hyperparameters.

    Where the paths through a token disagree about it, `positive` and `negative` are its means over them, and a loss
    must treat the two apart: f(positive) + g(negative), which then is the mean over paths of the ordinary loss. One
    that can't, because it is not linear in the advantage, needs `PATHS`.

    A loss with a gradient at tokens of zero advantage (a divergence, an entropy bonus) declares it by a
    field or constant `regularises`.
    """

    @property
    def needs(self) -> frozenset[Need]:
        """Which optional columns it reads, as values of `bough.tree.needs`; those of objectives in its fields aside."""
        ...

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss, a sum over tokens weighted by `loss_weight`, so the losses of micro-batches add up."""
        ...


def regularises(objective: Objective) -> bool:
    """Whether the objective or one inside it has a gradient at tokens of zero advantage."""
    return any(getattr(piece.value, "regularises", False) for piece in pieces(objective))
