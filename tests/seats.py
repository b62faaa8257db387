"""Runs of Nim that are over in seconds, with policies for its two seats."""

from tests.env.nim import Nim

from bough.engine import Local, Sampling
from bough.explore import Chains
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.roles import OwnPolicy
from bough.rollout import Limits
from bough.train import Checkpointing, Evaluation, Execution, Health, Run, Schedule, Tasks, Warmup, World


def run() -> Run:
    """One policy for both seats."""
    world = World(
        name="nim",
        env=Nim(),
        policy=Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=256),
        limits=Limits(turns=8),
        sampling=Sampling(max_tokens=4),
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=12, epochs=12, learning_rate=2e-2, batch_tokens=256),
        schedule=Schedule(steps=4, batch_tasks=3),
        execution=Execution(engine=Local(slots=32), threads=1),
        tasks=Tasks(split="train", count=12),
        evaluation=Evaluation(tasks=Tasks(split="test", count=6), every=2),
    )
    return world.run(
        explorer=Chains(n=4),
        checkpointing=Checkpointing(every=1, keep=2, trees_every=2),
        health=Health(dead_batches=100),
        filters=(),
    )


def own() -> Run:
    """Weights of its own for each seat."""
    return run().replace(name="own", steps=12, policies={"second": OwnPolicy()})
