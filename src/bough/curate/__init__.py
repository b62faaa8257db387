"""Curation: filters of groups and paths, replay and curricula."""

from bough.curate.accepted_tasks import AcceptedTasks
from bough.curate.efficient_paths import EfficientPaths
from bough.curate.filter import Filter, FilterResult, apply_filters, select
from bough.curate.nonzero_advantage import NonZeroAdvantage
from bough.curate.scored_paths import ScoredPaths
from bough.curate.small_advantage import SmallAdvantage

__all__ = [
    "AcceptedTasks",
    "EfficientPaths",
    "Filter",
    "FilterResult",
    "NonZeroAdvantage",
    "ScoredPaths",
    "SmallAdvantage",
    "apply_filters",
    "select",
]
