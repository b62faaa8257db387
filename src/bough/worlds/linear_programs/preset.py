"""Linear programs: word problems with two variables, whose model the agent writes for an exact solver."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.linear_programs.env import LinearPrograms


def linear_programs(resources: int = 2) -> World:
    """Word problems of operations research, far smaller than StepORLM's (arXiv 2509.22558), with a solver's verdict.

    Trains in minutes on two CPU cores. Assumes an oracle for the warm-up.

    Args:
        resources: Rows of a problem, 1 to 4.
    """
    return World(
        name="linear_programs",
        env=LinearPrograms(resources=resources),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=256),
        limits=Limits(turns=6),
        sampling=Sampling(max_tokens=10),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=100, epochs=8, learning_rate=2e-3, batch_tokens=1024),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=50), every=20),
    )
