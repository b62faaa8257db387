"""Exploration: how trees grow, in training and at inference."""

from bough.explore.agent import Agent, Critic, Limits
from bough.explore.asking import Number, Words
from bough.explore.attempt import Attempt
from bough.explore.chains import Chains
from bough.explore.correct import Astray, Blame, Correct
from bough.explore.cursor import Cursor, Draft
from bough.explore.demonstrations import Demonstration
from bough.explore.dream import Aside, Ask, Dream
from bough.explore.entropy_forks import EntropyForks
from bough.explore.forks import Forks
from bough.explore.grow import Explorer, Grove, Grown, Shelf, paths_of
from bough.explore.growth import Growth, Node
from bough.explore.guided import Guided
from bough.explore.ledger import Cost, Ledger, Spent
from bough.explore.levels import Levels
from bough.explore.lookahead import Lookahead
from bough.explore.player import Player
from bough.explore.quality import Advised, Asked, Early, Proper, Quality
from bough.explore.seeds import derive
from bough.explore.segments import Segments
from bough.explore.slate import Slate
from bough.explore.surprisal import Surprisal
from bough.explore.waits import Stuck, Wait, Waits

__all__ = [
    "Advised",
    "Agent",
    "Aside",
    "Ask",
    "Asked",
    "Astray",
    "Attempt",
    "Blame",
    "Chains",
    "Correct",
    "Cost",
    "Critic",
    "Cursor",
    "Demonstration",
    "Draft",
    "Dream",
    "Early",
    "EntropyForks",
    "Explorer",
    "Forks",
    "Grove",
    "Grown",
    "Growth",
    "Guided",
    "Ledger",
    "Levels",
    "Limits",
    "Lookahead",
    "Node",
    "Number",
    "Player",
    "Proper",
    "Quality",
    "Segments",
    "Shelf",
    "Slate",
    "Spent",
    "Stuck",
    "Surprisal",
    "Wait",
    "Waits",
    "Words",
    "derive",
    "paths_of",
]
