"""Sorting by a graph of thoughts: a controller picks transformations that a weak solver executes."""

from bough.context import Window
from bough.engine import Sampling
from bough.env import ScriptedSeats
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.thoughts.env import ScriptedSolver, ThoughtGraph


def thoughts(numbers: int = 8, reach: int = 4) -> World:
    """Sorting by a graph of thoughts, ARIES (arXiv 2502.21208) with a trained controller and a scripted solver.

    Trains in minutes on two CPU cores. Assumes an oracle for the warm-up. A model is the solver with
    `env='ThoughtGraph()' policies.solver='OpenAi(model=..., base_url=...)'`.

    Args:
        numbers: Length of a list.
        reach: Length of the longest list that the solver sorts without errors.
    """
    return World(
        name="thoughts",
        env=ScriptedSeats(
            env=ThoughtGraph(numbers=numbers, reach=reach), scripts={"solver": ScriptedSolver(reach=reach)}
        ),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        context=Window(turns=1),
        limits=Limits(turns=12),
        sampling=Sampling(max_tokens=6),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2),
        warmup=Warmup(demonstrations=60, epochs=4, learning_rate=2e-3, batch_tokens=1024),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=1000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=20),
    )
