"""Environments: states and steps as plain values, and the protocols of environments and their hosts."""

from bough.env.check_call import check_call
from bough.env.database import Database
from bough.env.dialogue import Dialogue, ScriptedUser
from bough.env.env import Branching, Closing, Env, EnvFault, Oracle, Seated, Split, State, Step, UserCodeError, seats_of
from bough.env.frozenlake import FrozenLake
from bough.env.function_tool import ToolError
from bough.env.gymnasium import Gymnasium, gymnasium_env
from bough.env.host import EnvHost, Host
from bough.env.http_env import HttpEnv
from bough.env.inline import InProcessHost
from bough.env.joint import ParallelCalls
from bough.env.mcp import McpHttp, McpStdio
from bough.env.openenv import OpenEnv, openenv_env
from bough.env.openspiel import OpenSpiel
from bough.env.pettingzoo import PettingZoo, pettingzoo_env
from bough.env.planner_executor import PlannerExecutor
from bough.env.program_tasks import ProgramTasks
from bough.env.replay import Replay
from bough.env.script import RandomAction, Script
from bough.env.scripted_seats import ScriptedSeats
from bough.env.shop import Shop
from bough.env.sokoban import Sokoban
from bough.env.spiel_scripts import EquilibriumPlay, PerfectPlay, TreeSearchPlay
from bough.env.textworld import TextWorld
from bough.env.tools import ToolsEnv, call, tools_env
from bough.env.workers import Workers

__all__ = [
    "Branching",
    "Closing",
    "Database",
    "Dialogue",
    "Env",
    "EnvFault",
    "EnvHost",
    "EquilibriumPlay",
    "FrozenLake",
    "Gymnasium",
    "Host",
    "HttpEnv",
    "InProcessHost",
    "McpHttp",
    "McpStdio",
    "ParallelCalls",
    "OpenEnv",
    "OpenSpiel",
    "Oracle",
    "PerfectPlay",
    "PettingZoo",
    "PlannerExecutor",
    "ProgramTasks",
    "RandomAction",
    "Replay",
    "Script",
    "ScriptedSeats",
    "ScriptedUser",
    "Seated",
    "Shop",
    "Sokoban",
    "Split",
    "State",
    "Step",
    "TextWorld",
    "ToolError",
    "ToolsEnv",
    "TreeSearchPlay",
    "UserCodeError",
    "Workers",
    "call",
    "check_call",
    "gymnasium_env",
    "openenv_env",
    "pettingzoo_env",
    "seats_of",
    "tools_env",
]
