"""Hidden facts: an agent asks about the signs of a case, a few of which decide its class."""

from bough.engine import Sampling
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.worlds.facts.env import HiddenFacts


def facts(facts: int = 6, informative: int = 2) -> World:
    """Cases with hidden facts (ProMed, arXiv 2508.13514), far smaller than the paper's medical records.

    Trains in minutes on two CPU cores. Assumes an oracle for the warm-up.

    Args:
        facts: Signs of a case, 6 to 20.
        informative: Signs that decide its class.
    """
    return World(
        name="facts",
        env=HiddenFacts(facts=facts, informative=informative),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=256),
        limits=Limits(turns=6),
        sampling=Sampling(max_tokens=4),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=20, epochs=8, learning_rate=2e-3, batch_tokens=512),
        schedule=Schedule(steps=60, batch_tasks=8),
        tasks=Tasks(split="train", count=24),
        evaluation=Evaluation(tasks=Tasks(split="test", count=4), every=20),
    )
