"""MiniWoB++: easy tasks on web pages, in a real Chromium."""

from bough.context import Window
from bough.engine import Sampling
from bough.env import MiniWob
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.reward import EnvReward, InvalidAction
from bough.rollout import Limits
from bough.train import Evaluation, Execution, Schedule, Tasks, Warmup, World


def miniwob() -> World:
    """MiniWoB++ (arXiv 1802.08802), five easy pages that take one or two actions, as lists of elements.

    Trains in minutes on one CPU core. Needs the extra `miniwob` and Chromium. Assumes an oracle for the warm-up: a
    script for each page.
    """
    return World(
        name="miniwob",
        env=MiniWob(kinds=("easy",), ids="label", max_steps=2),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        context=Window(turns=1),
        limits=Limits(turns=2),
        sampling=Sampling(max_tokens=8),
        rewards=(EnvReward(), InvalidAction(penalty=0.2)),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=400, epochs=3, learning_rate=3e-3, batch_tokens=1024),
        schedule=Schedule(steps=60, batch_tasks=16),
        execution=Execution(threads=1),
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=10),
    )
