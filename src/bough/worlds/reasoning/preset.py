"""Reasoning: one easy dataset of reasoning-gym, sums of two numbers."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.reasoning.env import ReasoningGym

CONFIG = '{"chain_sum": {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2}}'


def reasoning() -> World:
    """Sums and differences of reasoning-gym (arXiv 2505.24760), for pretrained policies.

    `Tiny` does not learn it: it solves 2.5 % of held-out tasks after the warm-up, 3.0 % after 60 steps (one seed).
    Needs the extra `reasoning`. Assumes reference answers for the warm-up. The reward is the scorer of the dataset.
    """
    return World(
        name="reasoning",
        env=ReasoningGym(datasets=("chain_sum",), config=CONFIG),
        policy=Tiny(layers=2, width=64, heads=4, vocab_tokens=300, context_tokens=256),
        limits=Limits(turns=1),
        sampling=Sampling(max_tokens=8),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=2000, epochs=4, learning_rate=3e-3, batch_tokens=2048),
        schedule=Schedule(steps=60, batch_tasks=16),
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=20),
    )
