"""The world of counting down."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough_countdown.env import Countdown


def countdown() -> World:
    """Counting down by steps of up to 40: trains in a minute on two CPU cores."""
    return World(
        name="countdown",
        env=Countdown(),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=256),
        limits=Limits(turns=3),
        sampling=Sampling(max_tokens=4),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=24, epochs=10, learning_rate=3e-3, batch_tokens=1024),
        schedule=Schedule(steps=20, batch_tasks=8),
        tasks=Tasks(split="train", count=24),
        evaluation=Evaluation(tasks=Tasks(split="test", count=3), every=10),
    )
