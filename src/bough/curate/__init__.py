"""Curation: which groups are worth learning from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bough.tree import Credited


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """What passed, and how many groups did not, by reason."""

    trees: tuple[Credited, ...]
    dropped: dict[str, int]


@runtime_checkable
class Admit(Protocol):
    """Keeps or drops whole groups (the trees of one task)."""

    def __call__(self, credited: Sequence[Credited]) -> Admitted:
        """Choose; order is kept."""
        ...


# Last, because every piece returns `Admitted`.
from bough.curate.exit import ExIt  # noqa: E402
from bough.curate.pick_paths import PickPaths  # noqa: E402
from bough.curate.signal import Signal  # noqa: E402
from bough.curate.small_advantage import SmallAdvantage  # noqa: E402
from bough.curate.snapshots import Snapshots  # noqa: E402
from bough.curate.success_replay import SuccessReplay  # noqa: E402
from bough.curate.tracker import Tracker  # noqa: E402

__all__ = [
    "Admit",
    "Admitted",
    "ExIt",
    "PickPaths",
    "Signal",
    "SmallAdvantage",
    "Snapshots",
    "SuccessReplay",
    "Tracker",
]
