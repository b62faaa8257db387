"""GRPO with SmolLM2-135M-Instruct on the shop."""

from dataclasses import replace

from bough.methods.grpo import grpo
from bough.policies.smollm2 import smollm2
from bough.train import Run
from bough.worlds.shop.preset import shop


def grpo_smollm2_shop(*, lora: bool = False) -> Run:
    """GRPO (arXiv 2402.03300) with SmolLM2-135M-Instruct on the shop: trains in ten minutes on two CPU cores.

    Args:
        lora: Whether to train adapters instead of all weights.
    """
    world = smollm2(shop(), lora=lora)
    warmup = replace(world.warmup, demonstrations=12)
    return grpo(world.replace(warmup=warmup, steps=25, batch_tasks=4)).replace(name="grpo_smollm2_shop")
