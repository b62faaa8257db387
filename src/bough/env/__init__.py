"""Environments: states and steps as plain values, and the protocols of environments and their hosts."""

from bough.env.adapters.gymnasium import Gymnasium, gymnasium_env
from bough.env.adapters.http_env import HttpEnv
from bough.env.adapters.openenv import OpenEnv, openenv_env
from bough.env.adapters.openspiel.openspiel import OpenSpiel
from bough.env.adapters.openspiel.scripts import EquilibriumPlay, PerfectPlay, TreeSearchPlay
from bough.env.adapters.pettingzoo import PettingZoo, pettingzoo_env
from bough.env.adapters.verifiers.verifiers import Verifiers, verifiers_env
from bough.env.check_call import check_call
from bough.env.env import (
    Branching,
    Closable,
    Env,
    EnvFault,
    HasKnownDeviations,
    MultiAgentEnv,
    Oracle,
    Split,
    State,
    Step,
    UserCodeError,
    Waits,
    deviations_of,
    seats_of,
)
from bough.env.host import EnvHost, Host
from bough.env.hosts.inline import InProcessHost
from bough.env.hosts.workers import Workers
from bough.env.hub_dataset import HubDataset
from bough.env.program_tasks import ProgramTasks
from bough.env.prompts.prompts import PromptsEnv, prompts_env
from bough.env.sandbox import Ending, Sandbox, SandboxError, SandboxResult
from bough.env.script import RandomAction, Script
from bough.env.tools.database import Database
from bough.env.tools.function_tool import ToolError, stateless
from bough.env.tools.mcp import McpHttp, McpStdio
from bough.env.tools.python_tool import python, run_python
from bough.env.tools.tools import ToolsEnv, call, tools_env
from bough.env.wrappers.internal_search import InternalSearch
from bough.env.wrappers.joint import ParallelCalls
from bough.env.wrappers.planner_executor import PlannerExecutor
from bough.env.wrappers.replay import Replay
from bough.env.wrappers.scripted_seats import ScriptedSeats
from bough.env.wrappers.self_iteration import SelfIteration
from bough.env.wrappers.simulated_tools import SimulatedTools
from bough.env.wrappers.sql_memory import SqlMemory

__all__ = [
    "Branching",
    "Closable",
    "Database",
    "Ending",
    "HasKnownDeviations",
    "Env",
    "EnvFault",
    "EnvHost",
    "EquilibriumPlay",
    "Gymnasium",
    "Host",
    "HttpEnv",
    "HubDataset",
    "InProcessHost",
    "InternalSearch",
    "McpHttp",
    "McpStdio",
    "OpenEnv",
    "OpenSpiel",
    "Oracle",
    "ParallelCalls",
    "PerfectPlay",
    "PettingZoo",
    "PlannerExecutor",
    "ProgramTasks",
    "PromptsEnv",
    "RandomAction",
    "Replay",
    "Sandbox",
    "SandboxError",
    "SandboxResult",
    "Script",
    "ScriptedSeats",
    "MultiAgentEnv",
    "SelfIteration",
    "SimulatedTools",
    "Split",
    "SqlMemory",
    "State",
    "Step",
    "ToolError",
    "ToolsEnv",
    "TreeSearchPlay",
    "UserCodeError",
    "Waits",
    "Verifiers",
    "Workers",
    "call",
    "check_call",
    "gymnasium_env",
    "openenv_env",
    "prompts_env",
    "pettingzoo_env",
    "python",
    "run_python",
    "deviations_of",
    "seats_of",
    "stateless",
    "tools_env",
    "verifiers_env",
]
