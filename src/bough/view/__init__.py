"""Looking: progress while a run goes on, its report, groups as text, and the intervals they show."""

from bough.view.choose import Chosen, choose_groups
from bough.view.counter import counter
from bough.view.interval import paired, wilson
from bough.view.live import Live
from bough.view.nearest import unknown
from bough.view.progress import Progress
from bough.view.report import Report, write_report
from bough.view.results import Panel, headline
from bough.view.text import show_tree

__all__ = [
    "Chosen",
    "Live",
    "Panel",
    "Progress",
    "Report",
    "choose_groups",
    "counter",
    "headline",
    "paired",
    "show_tree",
    "unknown",
    "wilson",
    "write_report",
]
