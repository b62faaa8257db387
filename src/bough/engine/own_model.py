"""Settings of engines with a model of their own."""

import inspect
from typing import Protocol, runtime_checkable

from bough.engine.engine import Engine
from bough.engine.messages import Messages
from bough.engine.usage import ServerUsage


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

    def build(self, policy: object = None) -> Engine:
        """Build the engine, without a policy."""
        ...


def has_own_model(kind: object) -> bool:
    """Whether a name stands for a class of settings with a model of their own."""
    return inspect.isclass(kind) and all(hasattr(kind, member) for member in ("model", "renderer", "build"))


@runtime_checkable
class Remote(Protocol):
    """An engine that calls a server."""

    @property
    def usage(self) -> ServerUsage:
        """Total usage so far."""
        ...

    async def check(self) -> None:
        """Check the connection.

        Raises:
            EngineFault: when nothing answers, or the server refuses the key; the message has a remedy.
        """
        ...
