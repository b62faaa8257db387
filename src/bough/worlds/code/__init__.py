"""Programming tasks with unit tests: the agent answers with code."""

from bough.worlds.code.code_tools import CodeTools
from bough.worlds.code.env import CodeTasks

__all__ = ["CodeTasks", "CodeTools"]
