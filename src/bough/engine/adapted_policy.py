"""A policy with adapters, as an engine sees it that applies adapters itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor


class Adapters(Protocol):
    """Low-rank adapters of a policy."""

    @property
    def rank(self) -> int:
        """Rows of A."""
        ...

    @property
    def alpha(self) -> float:
        """The adapters are scaled by alpha / rank."""
        ...

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the adapted layers within their blocks."""
        ...

    @property
    def weights(self) -> "Mapping[str, Tensor]":
        """A and B of every adapted layer, under the names of a PEFT file."""
        ...


@runtime_checkable
class AdaptedPolicy(Protocol):
    """A `ServedPolicy` that may have adapters."""

    def adapters(self) -> Adapters | None:
        """The adapters, with live tensors; None when every weight is trained."""
        ...

    def save_base(self, directory: Path) -> None:
        """Write what `ServedPolicy.save` writes, with the base weights: without the adapters."""
        ...
