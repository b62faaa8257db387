"""A pretrained model, from a folder, a GGUF file, a package or the hub."""

from dataclasses import replace

from bough.engine import Local
from bough.policy import Lora, Pretrained
from bough.policy.locate import position_limit
from bough.train import World

CONTEXT_TOKENS = 2048

CACHE_TOKENS = 32768
"""Tokens whose keys and values the engine holds; 1.4 GiB with SmolLM2-135M."""


def pretrained(world: World, *, path: str, lora: bool = False, context_tokens: int | None = None) -> World:
    """A world with a pretrained model: its weights, learning rates, passes of the warm-up and bounds of memory.

    The number of demonstrations and of steps stay the world's. The learning rates are those of SmolLM2-135M; a larger
    model needs smaller ones.

    Args:
        world: Its prompts fit `context_tokens`.
        path: A folder with a model, a GGUF file, "package:NAME", or the id of a model on the hub; see `Pretrained`.
        lora: Whether to train adapters instead of all weights.
        context_tokens: Most tokens of a prompt and its completion; None for 2,048, or the model's limit if less.
    """
    if context_tokens is None:
        context_tokens = min(CONTEXT_TOKENS, position_limit(path) or CONTEXT_TOKENS)
    warmup_rate, rate = (1e-3, 2e-4) if lora else (5e-5, 2e-5)
    return world.replace(
        policy=Pretrained(path=path, context_tokens=context_tokens, lora=Lora() if lora else None),
        optimizer=replace(world.optimizer, learning_rate=rate, minibatches=1, warmup_steps=0, micro_tokens=2048),
        warmup=replace(world.warmup, epochs=2, learning_rate=warmup_rate, batch_tokens=1024),
        execution=replace(world.execution, engine=Local(slots=64, cache_tokens=CACHE_TOKENS), threads=0),
    )
