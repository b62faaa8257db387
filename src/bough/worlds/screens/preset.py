"""A phone in text: open the right app, find the right element, click it."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.objective import Kl
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.screens.env import Screens


def screens() -> World:
    """Generated apps, far smaller than AndroidWorld (arXiv 2405.14573); splits as in arXiv 2603.07432.

    Assumes an oracle for the warm-up. Its demonstrations often stop early; reinforcement learning teaches the policy
    to finish the request first. The context holds all turns, so the policy reads its earlier actions.
    """
    return World(
        name="screens",
        env=Screens(tier=1, apps=2, rows=2, themes=False, ids="label", max_steps=6),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=1024),
        limits=Limits(turns=6),
        sampling=Sampling(max_tokens=6),
        regularizers=(Kl(coefficient=0.04),),
        filters=(),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2, warmup_steps=20),
        warmup=Warmup(demonstrations=800, epochs=8, learning_rate=3e-3, batch_tokens=2048, shortcuts=0.3),
        schedule=Schedule(steps=80, batch_tasks=16),
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=20),
    )
