"""Exploration: how trees grow, in training and at inference."""

from bough.explore.agent import Agent, Limits
from bough.explore.chains import Chains
from bough.explore.demonstrations import Demonstration
from bough.explore.forks import Forks
from bough.explore.grow import Explorer, Grove, Grown
from bough.explore.growth import Growth, Node
from bough.explore.player import Cursor, Player
from bough.explore.seeds import derive
from bough.explore.waits import Stuck, Wait, Waits

__all__ = [
    "Agent",
    "Chains",
    "Cursor",
    "Demonstration",
    "Explorer",
    "Forks",
    "Grove",
    "Grown",
    "Growth",
    "Limits",
    "Node",
    "Player",
    "Stuck",
    "Wait",
    "Waits",
    "derive",
]
