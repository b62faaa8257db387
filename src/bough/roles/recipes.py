"""What builds a policy or an engine."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bough.engine import Engine

if TYPE_CHECKING:
    from bough.engine.model import ServedPolicy
    from bough.policy.chat import ChatRenderer
    from bough.policy.policy import Policy


@runtime_checkable
class PolicyRecipe(Protocol):
    """Builds a policy: `Tiny` or `Pretrained`."""

    def build(self, texts: Iterable[str], assets: Path | None = None) -> "Policy":
        """Build the policy. `texts` are texts of the environment; `assets` is a folder for files of the run."""
        ...


@runtime_checkable
class RendererRecipe(Protocol):
    """A policy recipe that can build the renderer without the model."""

    def renderer(self, assets: Path) -> "ChatRenderer":
        """The renderer of the policy whose files are in `assets`."""
        ...


@runtime_checkable
class FilesRecipe(Protocol):
    """A policy recipe or another piece that reads files of the user, and can check them before anything is built."""

    def check_files(self) -> None:
        """Check that the files exist.

        Raises:
            OSError: when one is missing.
        """
        ...


@runtime_checkable
class EngineRecipe(Protocol):
    """Builds an engine: `Local`, `Vllm`, or a user's engine that wraps one."""

    def build(self, policy: "ServedPolicy") -> Engine:
        """Build an engine with the present weights of a policy, which it does not change."""
        ...
