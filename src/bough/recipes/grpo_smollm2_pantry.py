"""GRPO with SmolLM2-135M-Instruct on tools over a database."""

from dataclasses import replace

from bough.methods.grpo import grpo
from bough.policies.smollm2 import smollm2
from bough.train import Run
from bough.worlds.pantry.preset import pantry


def grpo_smollm2_pantry() -> Run:
    """GRPO (arXiv 2402.03300) with SmolLM2-135M-Instruct on tools over a database, in half an hour on two CPU cores.

    Tuned: as many demonstrations as leave something to learn.
    """
    world = smollm2(pantry())
    warmup = replace(world.warmup, demonstrations=16)
    return grpo(world.replace(warmup=warmup, steps=40, batch_tasks=4)).replace(name="grpo_smollm2_pantry")
