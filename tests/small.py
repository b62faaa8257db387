"""A whole run that is over in seconds: the real environment, engine and model, small."""

from bough.engine import Local, Sampling
from bough.explore import Chains
from bough.learner import Optimizer
from bough.objective import Chord, Epo, Kl, PpoClip, Sum, Tis
from bough.policy import Tiny
from bough.rollout import Limits
from bough.schedule import CosineSchedule
from bough.train import (
    Checkpointing,
    Demonstrations,
    Evaluation,
    Execution,
    Health,
    Run,
    Schedule,
    Tasks,
    Warmup,
    World,
)
from bough.worlds.frozenlake import FrozenLake

MEASURED = ("time/", "speed/tokens_per_s", "speed/in_flight", "memory/process_gib")
"""Beginnings of the metrics that differ between two equal runs."""


def run() -> Run:
    return world().run(explorer=Chains(n=4), checkpointing=Checkpointing(every=1, keep=2, trees_every=2))


def world() -> World:
    return World(
        name="small",
        env=FrozenLake(size=3, max_steps=6),
        policy=Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=512),
        limits=Limits(turns=4),
        sampling=Sampling(max_tokens=3),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=12, epochs=20, learning_rate=1e-2, batch_tokens=256),
        schedule=Schedule(steps=4, batch_tasks=3),
        execution=Execution(engine=Local(slots=32), threads=1),
        tasks=Tasks(split="train", count=12),
        evaluation=Evaluation(tasks=Tasks(split="test", count=6), every=2),
    )


def slow() -> Run:
    """The same, long enough to be killed in the middle."""
    return run().replace(
        name="slow",
        steps=30,
        health=Health(dead_batches=100),
        checkpointing=Checkpointing(every=3, keep=2, trees_every=5),
    )


def busy() -> Run:
    """Every setting that the loop hands to the learner has an effect: 10 steps, 5 passes over its 6 tasks."""
    mixed = Chord(objective=Tis(objective=PpoClip()), peak=0.9, valley=0.05, warm=0.3, decay=0.7)
    return run().replace(
        name="busy",
        explorer=Chains(n=2),
        filters=(),
        objective=Sum(terms=(mixed, Kl(coefficient=0.1), Epo(coefficient=0.01, low=1.0, high=1.0))),
        demonstrations=Demonstrations(count=4, per_step=2),
        sampling=Sampling(max_tokens=3, temperature=0.7),
        optimizer=Optimizer(
            learning_rate=3e-3, minibatches=2, epochs=2, weight_decay=0.1, schedule=CosineSchedule(start=1.0, end=0.0)
        ),
        warmup=Warmup(demonstrations=4, epochs=4, learning_rate=1e-2, batch_tokens=256),
        steps=10,
        tasks=Tasks(split="train", count=6),
        health=Health(dead_batches=100),
        checkpointing=Checkpointing(every=4, keep=100, trees_every=1),
        evaluation=Evaluation(tasks=Tasks(split="test", count=2), every=10, temperature=0),
    )
