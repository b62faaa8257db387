"""Environments: states and steps as plain values, and the protocols of environments and their hosts."""

from bough.env.agent_design import AgentDesign, TableBenchmark
from bough.env.alfworld import AlfWorld
from bough.env.bfcl import Bfcl
from bough.env.check_call import check_call
from bough.env.code_tasks import CodeTasks
from bough.env.code_tools import CodeTools
from bough.env.database import Database
from bough.env.dialogue import Dialogue, ScriptedUser
from bough.env.dialogue_graph import DialogueGraph
from bough.env.env import (
    Branching,
    Closing,
    Deviating,
    Env,
    EnvFault,
    Oracle,
    Seated,
    Split,
    State,
    Step,
    UserCodeError,
    Waits,
    deviations_of,
    seats_of,
)
from bough.env.frozenlake import FrozenLake
from bough.env.function_calls import FunctionCalls, function_calls_env
from bough.env.function_tool import ToolError, stateless
from bough.env.gymnasium import Gymnasium, gymnasium_env
from bough.env.hidden_facts import HiddenFacts
from bough.env.host import EnvHost, Host
from bough.env.http_env import HttpEnv
from bough.env.inline import InProcessHost
from bough.env.internal_search import InternalSearch
from bough.env.joint import ParallelCalls
from bough.env.linear_programs import LinearPrograms
from bough.env.mcp import McpHttp, McpStdio
from bough.env.miniwob import MiniWob
from bough.env.openenv import OpenEnv, openenv_env
from bough.env.openspiel import OpenSpiel
from bough.env.original_alfworld import OriginalAlfWorld
from bough.env.passages import Passages
from bough.env.pettingzoo import PettingZoo, pettingzoo_env
from bough.env.planner_executor import PlannerExecutor
from bough.env.program_tasks import ProgramTasks
from bough.env.python_tool import python, run_python
from bough.env.quiz import Quiz
from bough.env.reasoning import ReasoningGym
from bough.env.red_team import RedTeam, ScriptedClassifier, ScriptedTarget
from bough.env.replay import Replay
from bough.env.retrieval import Bm25s, CorpusFiles, Fts5, KnowledgeGraph
from bough.env.routed_search import RoutedSearch
from bough.env.sandbox import Ending, Sandbox, SandboxError, SandboxResult
from bough.env.scienceworld import ScienceWorld
from bough.env.screens.screens import Screens
from bough.env.script import RandomAction, Script
from bough.env.scripted_seats import ScriptedSeats
from bough.env.search_qa import SearchQa
from bough.env.self_iteration import SelfIteration
from bough.env.self_search import SelfSearch
from bough.env.shop import Shop
from bough.env.simulated_tools import SimulatedTools
from bough.env.socratic import ScriptedStudent, Socratic
from bough.env.sokoban import Sokoban
from bough.env.spiel_scripts import EquilibriumPlay, PerfectPlay, TreeSearchPlay
from bough.env.sql import Sql
from bough.env.sql_memory import SqlMemory
from bough.env.story import Story
from bough.env.text_to_sql import BirdFolder, GeneratedQuestions, SpiderFolder
from bough.env.textworld import TextWorld
from bough.env.thought_graph import ScriptedSolver, ThoughtGraph
from bough.env.tools import ToolsEnv, call, tools_env
from bough.env.verifiers import Verifiers, verifiers_env
from bough.env.workers import Workers

__all__ = [
    "AgentDesign",
    "AlfWorld",
    "Bfcl",
    "BirdFolder",
    "Bm25s",
    "Branching",
    "Closing",
    "CodeTasks",
    "CodeTools",
    "CorpusFiles",
    "Database",
    "Dialogue",
    "DialogueGraph",
    "Ending",
    "Deviating",
    "Env",
    "EnvFault",
    "EnvHost",
    "EquilibriumPlay",
    "FrozenLake",
    "Fts5",
    "FunctionCalls",
    "GeneratedQuestions",
    "Gymnasium",
    "HiddenFacts",
    "Host",
    "HttpEnv",
    "InProcessHost",
    "InternalSearch",
    "KnowledgeGraph",
    "LinearPrograms",
    "McpHttp",
    "McpStdio",
    "MiniWob",
    "OpenEnv",
    "OpenSpiel",
    "Oracle",
    "OriginalAlfWorld",
    "ParallelCalls",
    "Passages",
    "PerfectPlay",
    "PettingZoo",
    "PlannerExecutor",
    "ProgramTasks",
    "Quiz",
    "RandomAction",
    "ReasoningGym",
    "RedTeam",
    "Replay",
    "RoutedSearch",
    "Sandbox",
    "SandboxError",
    "SandboxResult",
    "ScienceWorld",
    "Screens",
    "Script",
    "ScriptedClassifier",
    "ScriptedSeats",
    "ScriptedSolver",
    "ScriptedStudent",
    "ScriptedTarget",
    "ScriptedUser",
    "SearchQa",
    "Seated",
    "SelfIteration",
    "SelfSearch",
    "Shop",
    "SimulatedTools",
    "Socratic",
    "Sokoban",
    "SpiderFolder",
    "Split",
    "Sql",
    "SqlMemory",
    "State",
    "Step",
    "Story",
    "TableBenchmark",
    "TextWorld",
    "ThoughtGraph",
    "ToolError",
    "ToolsEnv",
    "TreeSearchPlay",
    "UserCodeError",
    "Waits",
    "Verifiers",
    "Workers",
    "call",
    "check_call",
    "function_calls_env",
    "gymnasium_env",
    "openenv_env",
    "pettingzoo_env",
    "python",
    "run_python",
    "deviations_of",
    "seats_of",
    "stateless",
    "tools_env",
    "verifiers_env",
]
