"""One request, some functions: the right calls are the reference calls."""

from bough.worlds.function_calls.env import FunctionCalls, function_calls_env

__all__ = ["FunctionCalls", "function_calls_env"]
