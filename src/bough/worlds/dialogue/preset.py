"""Dialogues with a user: clarifying questions, bargains, or the extraction of a secret."""

from bough.engine import Sampling
from bough.env import ScriptedSeats
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.dialogue.env import Dialogue, Family, ScriptedUser


def dialogue(families: tuple[Family, ...] = ("bargain",)) -> World:
    """Bargains with a scripted buyer, far smaller than PPDPP's tasks (arXiv 2311.00262).

    Trains in minutes on two CPU cores. Assumes an oracle for the warm-up.

    Args:
        families: "bargain", "questions" (clarifying questions) or "secret" (an attack). The last two need a longer
            warm-up.
    """
    return World(
        name="dialogue",
        env=ScriptedSeats(env=Dialogue(families=families), scripts={"user": ScriptedUser()}),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        limits=Limits(turns=5),
        sampling=Sampling(max_tokens=8),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=100, epochs=8, learning_rate=3e-3, batch_tokens=1024),
        schedule=Schedule(steps=100, batch_tasks=16),
        tasks=Tasks(split="train", count=800),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=20),
    )
