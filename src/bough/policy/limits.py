"""How much text a model reads."""

from typing import Any

from transformers import PreTrainedConfig

SHIFTING = frozenset({"dynamic", "longrope"})
"""Rotary embeddings whose frequencies change for every token once some token stands beyond the original length."""


def context_limit(config: PreTrainedConfig, asked: int | None) -> int:
    """Most positions that the model of `config` reads, or `asked` when that is fewer.

    A model whose rotary frequencies depend on the longest text in the batch reads up to its original length only:
    beyond it a token's meaning would depend on what is computed next to it.

    Raises:
        ValueError: when `asked` is more than the model reads, or the config does not say.
    """
    limit: int | None = getattr(config, "max_position_embeddings", None)
    rope: Any = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") in SHIFTING:
        limit = rope.get("original_max_position_embeddings") or limit
    tokens = limit if asked is None else asked
    if tokens is None:
        raise ValueError(f"context_tokens: got None; need a number, for the {config.model_type} config names no limit")
    if tokens < 1 or (limit is not None and tokens > limit):
        raise ValueError(f"context_tokens: got {tokens}; need at least 1 and at most {limit}, what the model reads")
    return tokens
