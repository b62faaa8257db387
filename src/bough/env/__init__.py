"""Environments: states and steps as plain values, and the protocols of environments and their hosts."""

from bough.env.check_call import check_call
from bough.env.code_tasks import CodeTasks
from bough.env.code_tools import CodeTools
from bough.env.database import Database
from bough.env.env import Branching, Closing, Env, EnvFault, Oracle, Seated, Split, State, Step, UserCodeError, seats_of
from bough.env.frozenlake import FrozenLake
from bough.env.function_tool import ToolError, stateless
from bough.env.host import EnvHost, Host
from bough.env.inline import InProcessHost
from bough.env.joint import ParallelCalls
from bough.env.mcp import McpHttp, McpStdio
from bough.env.planner_executor import PlannerExecutor
from bough.env.program_tasks import ProgramTasks
from bough.env.python_tool import python, run_python
from bough.env.reasoning import ReasoningGym
from bough.env.replay import Replay
from bough.env.sandbox import Ending, Sandbox, SandboxError, SandboxResult
from bough.env.script import RandomAction, Script
from bough.env.shop import Shop
from bough.env.sokoban import Sokoban
from bough.env.textworld import TextWorld
from bough.env.tools import ToolsEnv, call, tools_env
from bough.env.workers import Workers

__all__ = [
    "Branching",
    "Closing",
    "CodeTasks",
    "CodeTools",
    "Database",
    "Env",
    "EnvFault",
    "Ending",
    "EnvHost",
    "FrozenLake",
    "Host",
    "InProcessHost",
    "McpHttp",
    "McpStdio",
    "ParallelCalls",
    "Oracle",
    "PlannerExecutor",
    "ProgramTasks",
    "RandomAction",
    "ReasoningGym",
    "Replay",
    "Sandbox",
    "SandboxError",
    "SandboxResult",
    "Script",
    "Seated",
    "Shop",
    "Sokoban",
    "Split",
    "State",
    "Step",
    "TextWorld",
    "ToolError",
    "ToolsEnv",
    "UserCodeError",
    "Workers",
    "call",
    "check_call",
    "python",
    "run_python",
    "seats_of",
    "stateless",
    "tools_env",
]
