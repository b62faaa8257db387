"""MiniWoB++: easy tasks on web pages, in a real Chromium."""

from bough.context import Window
from bough.engine import Sampling
from bough.env import MiniWob
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Execution, Schedule, Tasks, Warmup, World


def miniwob() -> World:
    """MiniWoB++ (arXiv 1802.08802), eight easy pages that take one to three actions, as lists of elements.

    Needs the extra `miniwob` and Chromium. Assumes an oracle for the warm-up: scripts for each page.
    """
    return World(
        name="miniwob",
        env=MiniWob(kinds=("easy",), ids="label", max_steps=5),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        context=Window(turns=1),
        limits=Limits(turns=5),
        sampling=Sampling(max_tokens=16),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=150, epochs=8, learning_rate=3e-3, batch_tokens=2048),
        schedule=Schedule(steps=100, batch_tasks=16),
        execution=Execution(threads=1),
        tasks=Tasks(split="train", count=800),
        evaluation=Evaluation(tasks=Tasks(split="test", count=150), every=20),
    )
