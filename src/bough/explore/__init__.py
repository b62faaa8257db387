"""Exploration: how trees grow, in training and at inference."""

from bough.explore.agent import Agent, Critic, Limits
from bough.explore.chains import Chains
from bough.explore.cursor import Cursor, Draft
from bough.explore.demonstrations import Demonstration
from bough.explore.forks import Forks
from bough.explore.grow import Explorer, Grove, Grown
from bough.explore.growth import Growth, Node
from bough.explore.ledger import Cost, Ledger, Spent
from bough.explore.player import Player
from bough.explore.seeds import derive
from bough.explore.waits import Stuck, Wait, Waits

__all__ = [
    "Agent",
    "Chains",
    "Cost",
    "Critic",
    "Cursor",
    "Demonstration",
    "Draft",
    "Explorer",
    "Forks",
    "Grove",
    "Grown",
    "Growth",
    "Ledger",
    "Limits",
    "Node",
    "Player",
    "Spent",
    "Stuck",
    "Wait",
    "Waits",
    "derive",
]
