"""What pieces with a model or a data set of a hub declare, so that a run keeps the commit."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from bough.hub.repo import HubRepo


@runtime_checkable
class HubSource(Protocol):
    """A piece whose model or data set may be one of a hub."""

    def hub_repo(self) -> HubRepo | None:
        """The model or data set; None where the piece names a path."""
        ...

    def pinned_settings(self) -> Mapping[str, str]:
        """Download, and return the setting that names the commit; empty where the piece names a path.

        Raises:
            OSError: when the model or data set can't be had.
        """
        ...
