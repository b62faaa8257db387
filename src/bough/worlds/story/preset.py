"""Short stories of four plot steps, for searches that value steps by surprisal."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.story.env import Story


def story() -> World:
    """Stories with three given words, one sentence at a time, after COS(M+O)S (arXiv 2501.17104).

    Assumes an oracle for the warm-up: simple sentences from a grammar, on which a small policy has a surprisal.
    """
    return World(
        name="story",
        env=Story(),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        limits=Limits(turns=4),
        sampling=Sampling(max_tokens=24),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=400, epochs=6, learning_rate=3e-3, batch_tokens=1024),
        schedule=Schedule(steps=20, batch_tasks=8),
        tasks=Tasks(split="train", count=400),
        evaluation=Evaluation(tasks=Tasks(split="test", count=40), every=5),
    )
