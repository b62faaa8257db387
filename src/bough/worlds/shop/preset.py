"""The shop: buy five things on a list, one a turn; any mistake ends the episode."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.shop.env import Shop


def shop() -> World:
    """A shopping list of five things, far smaller than WebShop (arXiv 2207.01206): trains in a minute on two CPU cores.

    Assumes an oracle for the warm-up. Each thing pays a fifth, so a path that fails early has a lower return.
    """
    return World(
        name="shop",
        env=Shop(wanted=5),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        limits=Limits(turns=5),
        sampling=Sampling(max_tokens=4),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=64, epochs=15, learning_rate=3e-3, batch_tokens=1024),
        schedule=Schedule(steps=40, batch_tasks=16),
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=40), every=10),
    )
