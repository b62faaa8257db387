"""Code: one-line functions from their description, with unit tests in a sandbox."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.code.env import CodeTasks

FAMILIES = (
    "times_plus",
    "times_minus",
    "plus_times",
    "minus_times",
    "square_plus",
    "distance",
)


def code() -> World:
    """Expressions of a number, far smaller than the programs of MBPP (arXiv 2108.07732) and HumanEval (2107.03374).

    Needs bubblewrap. Assumes reference answers for the warm-up. The reward is the share of hidden tests that pass.
    """
    return World(
        name="code",
        env=CodeTasks(families=FAMILIES, visible=0, hidden=4, reward="all"),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=256),
        limits=Limits(turns=1),
        sampling=Sampling(max_tokens=20),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=650, epochs=6, learning_rate=3e-3, batch_tokens=2048),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=1500),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=20),
    )
