"""Settings of engines with a model of their own."""

from typing import Protocol, runtime_checkable

from bough.engine.engine import Engine
from bough.engine.messages import Messages


@runtime_checkable
class OwnModel(Protocol):
    """Settings of an engine that needs no policy: `OpenAi`."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def renderer(self) -> Messages | None:
        """Converts text to the engine's tokens; None where these are the tokens of the policy's model."""
        ...

    def build(self, model: object = None) -> Engine:
        """Build the engine, without a policy."""
        ...
