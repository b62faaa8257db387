"""FrozenLake in text, 5 x 5: cross a frozen lake without falling into a hole."""

from bough.context import Window
from bough.engine import Sampling
from bough.learner import Optimizer
from bough.objective import Kl
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.frozenlake.env import FrozenLake


def frozenlake() -> World:
    """FrozenLake in the manner of RAGEN (arXiv 2504.20073): trains in a minute on two CPU cores.

    Assumes an oracle for the warm-up. An observation is the whole state, so the prompt is the present map alone.
    """
    return World(
        name="frozenlake",
        env=FrozenLake(size=5, corners=True, max_steps=14),
        policy=Tiny(layers=2, width=64, heads=4),
        context=Window(turns=1),
        limits=Limits(turns=14),
        sampling=Sampling(max_tokens=4),
        # Groups with equal returns stay: the divergence alone pulls them back to the actions of the warm-up.
        regularizers=(Kl(coefficient=0.04),),
        filters=(),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2, warmup_steps=20),
        warmup=Warmup(demonstrations=96, epochs=6, learning_rate=1e-3, batch_tokens=1024),
        schedule=Schedule(steps=100, batch_tasks=16),
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=300), every=20),
    )
