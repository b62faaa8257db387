"""Hooks: stateful helpers that run between reward and credit, and resume bit for bit."""

from bough.hooks.exit import ExIt
from bough.hooks.hindsight import Hindsight
from bough.hooks.hook import HookRecipe
from bough.hooks.pick_paths import PickPaths
from bough.hooks.search_noise import SearchNoise
from bough.hooks.snapshots import Snapshots
from bough.hooks.success_replay import SuccessReplay
from bough.hooks.tracker import Tracker

__all__ = ["Hindsight", "HookRecipe", "ExIt", "PickPaths", "SearchNoise", "Snapshots", "SuccessReplay", "Tracker"]
