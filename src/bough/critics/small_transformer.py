"""A small causal transformer that reads the policy's tokens, for critics and reward models."""

from typing import Any

import torch
from torch import nn


def small_transformer(*, layers: int, width: int, heads: int, vocab_tokens: int, context_tokens: int) -> nn.Module:
    """A transformer with random weights and without an output layer, in float32.

    Args:
        layers: Number of layers.
        width: Elements of a hidden state, a multiple of `heads`.
        heads: Attention heads.
        vocab_tokens: Size of the vocabulary.
        context_tokens: Maximum length of a text, in tokens.
    """
    from transformers import AutoModel, Qwen3Config

    config = Qwen3Config(
        vocab_size=vocab_tokens,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=width // heads,
        max_position_embeddings=context_tokens,
        initializer_range=width**-0.5 / 2,
        use_cache=False,
        pad_token_id=None,
    )
    models: Any = AutoModel
    return models.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
