"""State that a checkpoint holds beside policies and optimizers."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from bough.lazy import Tensor


@runtime_checkable
class Checkpointable(Protocol):
    """An object beside the policy with state for a checkpoint."""

    def state(self) -> Mapping[str, Tensor]:
        """The complete state, on the CPU."""
        ...

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`, bit for bit."""
        ...
