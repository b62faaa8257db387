"""A whole run that is over in seconds: the real environment, engine and model, small."""

from dataclasses import replace

from bough.engine import Local, Sampling
from bough.env import FrozenLake
from bough.explore import Chains, Limits
from bough.policy import Tiny
from bough.train import Guards, Heldout, Optimizer, Run, Saving, Tasks, Warmup

MEASURED = ("time/", "speed/tokens_per_s", "memory/process_gib")
"""Beginnings of the metrics that differ between two equal runs."""


def run() -> Run:
    return Run(
        name="small",
        env=FrozenLake(size=3, max_steps=6),
        policy=Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=512),
        explorer=Chains(n=4),
        limits=Limits(turns=4),
        sampling=Sampling(max_tokens=3),
        engine=Local(slots=32),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=12, epochs=20, learning_rate=1e-2, batch_tokens=256),
        steps=4,
        batch_tasks=3,
        tasks=Tasks(split="train", count=12),
        heldout=Heldout(tasks=Tasks(split="test", count=6), every=2),
        saving=Saving(every=1, keep=2, trees_every=2),
        threads=1,
    )


def slow() -> Run:
    """The same, long enough to be killed in the middle."""
    return replace(
        run(), name="slow", steps=30, guards=Guards(dead_batches=100), saving=Saving(every=3, keep=2, trees_every=5)
    )
