"""Environments: states and steps as plain values, and the protocols of environments and their hosts."""

from bough.env.check_call import check_call
from bough.env.env import Branching, Env, EnvFault, Oracle, Split, State, Step, UserCodeError
from bough.env.frozenlake import FrozenLake
from bough.env.host import EnvHost, Host
from bough.env.inline import InProcessHost
from bough.env.joint import ParallelCalls
from bough.env.replay import Replay
from bough.env.shop import Shop
from bough.env.sokoban import Sokoban
from bough.env.textworld import TextWorld
from bough.env.workers import Workers

__all__ = [
    "Branching",
    "Env",
    "EnvFault",
    "EnvHost",
    "FrozenLake",
    "Host",
    "InProcessHost",
    "ParallelCalls",
    "Oracle",
    "Replay",
    "Shop",
    "Sokoban",
    "Split",
    "State",
    "Step",
    "TextWorld",
    "UserCodeError",
    "Workers",
    "check_call",
]
