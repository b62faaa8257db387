"""Objectives: losses on columns of trained tokens, in pure torch. No tree, no text, no model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from jaxtyping import Float
from torch import Tensor

Need: TypeAlias = Literal["entropy", "reference"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """M trained tokens of one micro-batch.

    Attributes:
        logprob: [M], of the policy being trained, at the sampling temperature; carries a gradient.
        entropy: [M] nats, of the same distribution; carries a gradient. None unless the objective needs it.
        behaviour: [M], log-probability under the policy that sampled the token (or its recomputation).
        reference: [M], log-probability under the frozen reference policy. None unless the objective needs it.
        gain: [M] >= 0, as in `Credited`.
        lose: [M] <= 0, as in `Credited`.
        share: [M], the weight of each token in the mean over the whole optimizer batch, not this micro-batch; so
            losses and metrics of micro-batches add up.
    """

    logprob: Float[Tensor, " M"]
    entropy: Float[Tensor, " M"] | None
    behaviour: Float[Tensor, " M"]
    reference: Float[Tensor, " M"] | None
    gain: Float[Tensor, " M"]
    lose: Float[Tensor, " M"]
    share: Float[Tensor, " M"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loss:
    """A loss and what there is to report about it.

    Attributes:
        value: Scalar to minimise.
        metrics: Scalars without gradient, by name, each a share-weighted sum, so that micro-batches add up.
    """

    value: Float[Tensor, ""]
    metrics: Mapping[str, Float[Tensor, ""]]


@runtime_checkable
class Objective(Protocol):
    """A loss: a frozen dataclass whose fields are its hyperparameters."""

    @property
    def needs(self) -> frozenset[Need]:
        """Which optional columns must be there."""
        ...

    def __call__(self, columns: Columns) -> Loss:
        """The loss of a micro-batch; a sum over its tokens, weighted by `share`."""
        ...


# Last, because every piece takes `Columns` and returns a `Loss`.
from bough.objective.entropy import Entropy  # noqa: E402
from bough.objective.imitation import Imitation  # noqa: E402
from bough.objective.kl import Kl  # noqa: E402
from bough.objective.ppo import PpoClip  # noqa: E402
from bough.objective.share import Share  # noqa: E402
from bough.objective.sum import Sum  # noqa: E402

__all__ = ["Columns", "Entropy", "Imitation", "Kl", "Loss", "Need", "Objective", "PpoClip", "Share", "Sum"]
