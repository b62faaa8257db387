"""Playing a tree: an agent acts in an environment, and a builder records the nodes."""

from bough.rollout.agent import Agent, Critic, Limits
from bough.rollout.attempt import Attempt
from bough.rollout.budget import Cost, Ledger, Spent
from bough.rollout.builder import Growth, Node
from bough.rollout.cursor import Cursor, Draft
from bough.rollout.deadlines import Stuck, Wait, Waits
from bough.rollout.rollout import Player
from bough.rollout.runner import Explorer, Grove, Grown, Shelf, paths_of

__all__ = [
    "Agent",
    "Attempt",
    "Cost",
    "Critic",
    "Cursor",
    "Draft",
    "Explorer",
    "Grove",
    "Grown",
    "Growth",
    "Ledger",
    "Limits",
    "Node",
    "Player",
    "Shelf",
    "Spent",
    "Stuck",
    "Wait",
    "Waits",
    "paths_of",
]
