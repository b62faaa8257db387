"""Settings of an engine of which a run may have several."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bough.engine.engine import Engine

if TYPE_CHECKING:
    from bough.engine.model import ServedPolicy


@runtime_checkable
class ReplicatedRecipe(Protocol):
    """Settings of an engine of which there may be several."""

    @property
    def slots(self) -> int:
        """Most requests decoded at once."""
        ...

    def context_of(self, most: int) -> int:
        """Most tokens of prompt and completion together, with a model of `most` positions."""
        ...

    def build(self, policy: "ServedPolicy") -> Engine:
        """Build the engine with the weights of a policy, as version 0."""
        ...
