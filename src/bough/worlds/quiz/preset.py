"""A quiz of sixty questions: many small decisions, each rewarded at once, and few paths a batch."""

from bough.context import Window
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.quiz.env import Quiz


def quiz() -> World:
    """Sixty decisions a path, each rewarded at once: a contextual bandit (arXiv 1003.0146) where credit rules differ.

    Assumes an oracle for the warm-up, which leaves an accuracy of about a half. Trains in half a minute on one core.
    """
    return World(
        name="quiz",
        env=Quiz(questions=60, words=8),
        policy=Tiny(layers=2, width=64, heads=4),
        context=Window(turns=1),
        limits=Limits(turns=60),
        sampling=Sampling(max_tokens=2),
        optimizer=Optimizer(learning_rate=1e-3),
        warmup=Warmup(demonstrations=4, epochs=20, learning_rate=1e-3, batch_tokens=512),
        schedule=Schedule(steps=60, batch_tasks=2),
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=40), every=15),
    )
