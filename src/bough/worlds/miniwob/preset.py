"""MiniWoB++: short forms and tabs, in a real Chromium."""

from bough.context import Window
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.reward import EnvReward, InvalidAction
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.miniwob.env import MiniWob

PAGES = ("enter-time", "enter-date", "click-collapsible", "click-tab")


def miniwob() -> World:
    """MiniWoB++ (arXiv 1802.08802), four pages that take one or two actions, as lists of elements.

    Trains in minutes on one CPU core. Needs the extra `miniwob` and Chromium. Assumes an oracle for the warm-up: a
    script for each page. Half of its turns submit the page at once, which is often too early.
    """
    return World(
        name="miniwob",
        env=MiniWob(kinds=PAGES, ids="label", max_steps=3),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        context=Window(turns=1),
        limits=Limits(turns=3),
        sampling=Sampling(max_tokens=24),
        rewards=(EnvReward(), InvalidAction(penalty=0.2)),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=1000, epochs=6, learning_rate=3e-3, batch_tokens=1024, shortcuts=0.5),
        schedule=Schedule(steps=30, batch_tasks=16),
        tasks=Tasks(split="train", count=1000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=10),
    )
