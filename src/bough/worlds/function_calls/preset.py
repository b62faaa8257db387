"""Requests that need one or two function calls, checked by their syntax trees."""

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.function_calls.env import function_calls_env
from bough.worlds.function_calls.tool_requests import tool_requests


def function_calls() -> World:
    """Generated requests for five functions, far smaller than FunRL's data (arXiv 2508.05118).

    Assumes an oracle for the warm-up, whose thoughts name the functions. The split is by the request's words. For own
    rows, or the single-turn rows of BFCL, set `env='FunctionCalls(rows=file.jsonl)'`.
    """
    return World(
        name="function_calls",
        env=function_calls_env(tool_requests),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=1024),
        parser=ToolCalls(),
        limits=Limits(turns=1),
        sampling=Sampling(max_tokens=64),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=1000, epochs=6, learning_rate=3e-3, batch_tokens=2048),
        schedule=Schedule(steps=40, batch_tasks=16),
        tasks=Tasks(split="train", count=4000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=20),
    )
