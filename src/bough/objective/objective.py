"""An objective: a loss from the columns of a batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

from jaxtyping import Float

from bough.lazy import Tensor
from bough.needs import Need, pieces
from bough.objective.inputs import LossInputs
from bough.tree import StageError, describe


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loss:
    """A loss and its metrics.

    Attributes:
        value: Scalar to minimise.
        metrics: Scalars without gradient, by name, each a sum weighted by `LossInputs.metric_weight`, so that
            micro-batches add up to a mean.
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
        """Which optional columns it reads, as values of `bough.needs`; those of objectives in its fields aside."""
        ...

    def __call__(self, columns: LossInputs) -> Loss:
        """Computes the loss, a sum over tokens weighted by `loss_weight`, so the losses of micro-batches add up."""
        ...


def regularises(objective: Objective) -> bool:
    """Whether the objective or one inside it has a gradient at tokens of zero advantage."""
    return any(getattr(piece.value, "regularises", False) for piece in pieces(objective))


def compute_loss(objective: Objective, columns: LossInputs) -> Loss:
    """Computes a loss, of the whole objective or of one inside another, and checks what the objective returns.

    Raises:
        StageError: when it is no `Loss`, its value no scalar with a gradient, or a metric no single number; names the
            objective.
    """
    place, returned = f"objective={type(objective).__name__}", cast("object", objective(columns))
    need = "need a Loss whose value is a scalar with a gradient, the sum over tokens of their weighted losses"
    if not isinstance(returned, Loss):
        raise StageError(f"{place}: got {_described(returned)}; {need}")
    value = cast("object", returned.value)
    if not isinstance(value, Tensor) or value.ndim:
        raise StageError(f"{place}: got a Loss with {_described(value)} as value; {need}")
    if columns.carries_gradients and not value.requires_grad:
        raise StageError(f"{place}: got a Loss whose value has no gradient; {need}: compute it from columns.logprob")
    for name, metric in cast("Mapping[str, object]", returned.metrics).items():
        if not isinstance(metric, int | float) and not (isinstance(metric, Tensor) and metric.numel() == 1):
            raise StageError(
                f"{place}: got {_described(metric)} as metric {name!r}; need one number: a sum over tokens, weighted "
                "by columns.metric_weight"
            )
    return returned


def _described(value: object) -> str:
    return f"a tensor of shape {list(value.shape)}" if isinstance(value, Tensor) else describe(value)
