"""Sokoban in text, 6 x 6: push the box onto its target in at most five moves."""

from bough.context import Window
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.objective import Kl
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.sokoban.env import Sokoban


def sokoban() -> World:
    """Sokoban in the manner of RAGEN (arXiv 2504.20073): trains in minutes on two CPU cores.

    Assumes an oracle for the warm-up. An observation is the whole state. A box in a corner is stuck, so the agent has
    to plan.
    """
    return World(
        name="sokoban",
        env=Sokoban(size=6, max_steps=5, show_border=False),
        policy=Tiny(layers=2, width=64, heads=4),
        context=Window(turns=1),
        limits=Limits(turns=5),
        sampling=Sampling(max_tokens=4),
        regularizers=(Kl(coefficient=0.04),),
        filters=(),
        # One small step a batch: larger ones undo the warm-up of a model of this size.
        optimizer=Optimizer(learning_rate=2e-4, minibatches=1, warmup_steps=20),
        warmup=Warmup(demonstrations=150, epochs=10, learning_rate=1e-3, batch_tokens=1024),
        schedule=Schedule(steps=100, batch_tasks=16),
        tasks=Tasks(split="train", count=800),
        evaluation=Evaluation(tasks=Tasks(split="test", count=300), every=20),
    )
