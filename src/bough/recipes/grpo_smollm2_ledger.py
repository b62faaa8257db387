"""GRPO with SmolLM2-135M-Instruct on the ledger."""

from dataclasses import replace

from bough.methods.grpo import grpo
from bough.policies.smollm2 import smollm2
from bough.train import Evaluation, Run, Tasks
from bough.worlds.ledger import ledger


def grpo_smollm2_ledger(*, lora: bool = False) -> Run:
    """GRPO with SmolLM2-135M-Instruct (arXiv 2502.02737) on the ledger: trains in twenty minutes on two CPU cores.

    Args:
        lora: Whether to train adapters instead of all weights.
    """
    world = smollm2(ledger(), lora=lora)
    return grpo(
        world.replace(
            warmup=replace(world.warmup, demonstrations=36),
            evaluation=Evaluation(tasks=Tasks(split="test", count=80), every=20),
            steps=20,
            batch_tasks=4,
        )
    ).replace(name="grpo_smollm2_ledger")
