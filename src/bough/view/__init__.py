"""Views of a run: progress display, alarms, groups as text, and confidence intervals."""

from bough.view.alarm import Alarm
from bough.view.choose import Chosen, choose_groups
from bough.view.counter import counter
from bough.view.html_file import HtmlFile
from bough.view.interval import mean_interval, paired, wilson
from bough.view.live import Live
from bough.view.notes import CUT_REMEDY, cause, cut_note, cut_share, failed_note, invalid_note, late_note
from bough.view.progress import Progress
from bough.view.results import Panel, headline
from bough.view.reward_findings import reward_findings
from bough.view.reward_table import reward_table
from bough.view.rising_rewards import TASK_CHANNELS, rising_rewards
from bough.view.table import MetricTable
from bough.view.text import show_tree

__all__ = [
    "CUT_REMEDY",
    "TASK_CHANNELS",
    "Alarm",
    "Chosen",
    "HtmlFile",
    "Live",
    "MetricTable",
    "Panel",
    "Progress",
    "cause",
    "choose_groups",
    "counter",
    "cut_note",
    "cut_share",
    "failed_note",
    "headline",
    "invalid_note",
    "late_note",
    "mean_interval",
    "paired",
    "reward_table",
    "reward_findings",
    "rising_rewards",
    "show_tree",
    "wilson",
]
