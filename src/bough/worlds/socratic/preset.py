"""Socratic debugging: an instructor asks a scripted student about the bugs of its program."""

from bough.context import Window
from bough.engine import Sampling
from bough.env import ScriptedSeats
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.socratic.env import ScriptedStudent, Socratic


def socratic(bugs: int = 2, levels: int = 2) -> World:
    """Socratic debugging (arXiv 2406.11709) with a scripted student, far smaller than the paper's problems.

    Trains in minutes on two CPU cores. Assumes an oracle for the warm-up. A model is the student with
    `env='Socratic()' policies.student='OpenAi(model=..., base_url=...)'`.

    Args:
        bugs: Bugs of a program.
        levels: Levels of questions about a bug.
    """
    return World(
        name="socratic",
        env=ScriptedSeats(env=Socratic(bugs=bugs, levels=levels), scripts={"student": ScriptedStudent()}),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        context=Window(turns=1),
        limits=Limits(turns=16),
        sampling=Sampling(max_tokens=4),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2),
        warmup=Warmup(demonstrations=10, epochs=6, learning_rate=2e-3, batch_tokens=512),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=40),
        evaluation=Evaluation(tasks=Tasks(split="test", count=5), every=20),
    )
