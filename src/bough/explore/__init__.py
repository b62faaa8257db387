"""Exploration: how trees grow, in training and at inference."""

from bough.explore.agent import Agent, Critic, Limits
from bough.explore.chains import Chains
from bough.explore.cursor import Cursor, Draft
from bough.explore.demonstrations import Demonstration
from bough.explore.forks import Forks
from bough.explore.grow import Explorer, Grove, Grown
from bough.explore.growth import Growth, Node
from bough.explore.ledger import Cost, Ledger, Spent
from bough.explore.levels import Levels
from bough.explore.player import Player
from bough.explore.quality import Advised, Early, Judge, Proper, Quality
from bough.explore.seeds import derive
from bough.explore.slate import Slate
from bough.explore.waits import Stuck, Wait, Waits

__all__ = [
    "Advised",
    "Agent",
    "Chains",
    "Cost",
    "Critic",
    "Cursor",
    "Demonstration",
    "Draft",
    "Early",
    "Explorer",
    "Forks",
    "Grove",
    "Grown",
    "Growth",
    "Judge",
    "Ledger",
    "Levels",
    "Limits",
    "Node",
    "Player",
    "Proper",
    "Quality",
    "Slate",
    "Spent",
    "Stuck",
    "Wait",
    "Waits",
    "derive",
]
