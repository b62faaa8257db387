"""The context limit of a model."""

from typing import Any

from transformers import PreTrainedConfig

SHIFTING = frozenset({"dynamic", "longrope"})
"""Rotary embeddings whose frequencies change for all tokens once the sequence exceeds the original length."""


def context_limit(config: PreTrainedConfig, asked: int | None) -> int:
    """Return the most positions of the model of `config`, or `asked` if fewer.

    A model whose rotary frequencies depend on the longest sequence in the batch is limited to its original length:
    beyond it a token's rotary embedding would depend on the other sequences of the batch.

    Raises:
        ValueError: when `asked` exceeds the limit, or is None and the config has no limit.
    """
    limit: int | None = getattr(config, "max_position_embeddings", None)
    rope: Any = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") in SHIFTING:
        limit = rope.get("original_max_position_embeddings") or limit
    tokens = limit if asked is None else asked
    if tokens is None:
        raise ValueError(f"context_tokens: got None; need a number: the {config.model_type} config has no limit")
    if tokens < 1 or (limit is not None and tokens > limit):
        raise ValueError(f"context_tokens: got {tokens}; need at least 1 and at most {limit}, the model's limit")
    return tokens
