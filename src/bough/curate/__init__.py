"""Curation: filters of groups and paths, replay and curricula."""

from bough.curate.accepted_tasks import AcceptedTasks
from bough.curate.efficient_paths import EfficientPaths
from bough.curate.filter import NO_SIGNAL, BatchSelection, Filter, FilterResult, Ties, apply_filters, select
from bough.curate.nonzero_advantage import NonZeroAdvantage
from bough.curate.scored_paths import ScoredPaths
from bough.curate.small_advantage import SmallAdvantage
from bough.curate.uncut_paths import UncutPaths

__all__ = [
    "NO_SIGNAL",
    "AcceptedTasks",
    "BatchSelection",
    "EfficientPaths",
    "Filter",
    "FilterResult",
    "NonZeroAdvantage",
    "ScoredPaths",
    "SmallAdvantage",
    "Ties",
    "UncutPaths",
    "apply_filters",
    "select",
]
