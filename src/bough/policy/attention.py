"""Hands a transformers model's attention to its caller, so that tokens of many sequences can lie end to end."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

Attend: TypeAlias = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]
"""(layer, query [H, U, D], key [K, U, D], value [K, U, D], scale) -> [H, U, D]; positions are already rotated in.

K divides H; query head h reads key head h // (H // K).
"""

ATTENTION = "bough"
"""The name under which a transformers model finds `hand_over` (`attn_implementation`)."""

HARMLESS = frozenset({"position_ids", "cache_position", "is_causal"})
"""What models tell their attention function without meaning it to change the result."""


def hand_over(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    bough_attend: Attend | None = None,
    **settings: object,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it, done by the `bough_attend` that was given to the model's forward pass.

    Args:
        module: The layer; its `layer_idx` is the layer that `bough_attend` is told.
        query: [1, H, U, D].
        key: [1, K, U, D].
        value: [1, K, U, D].
        attention_mask: None; which token sees which is the caller's business.
        scaling: Multiplies the scores; None means D ** -0.5.
        dropout: 0.
        bough_attend: What does the work.
        settings: Anything else a model tells its attention.

    Returns:
        [1, U, H, D], and no attention weights.

    Raises:
        ValueError: when the model asks for what `bough_attend` would not do (a window, capped scores, sinks, a mask).
    """
    if bough_attend is None:
        raise ValueError(f"{type(module).__name__}: got no bough_attend; need a model that hands it to its attention")
    asked = [
        name for name, value in settings.items() if name not in HARMLESS and value is not None and value is not False
    ]
    asked += ["attention_mask"] if attention_mask is not None else []
    asked += ["dropout"] if dropout else []
    asked += ["is_causal=False"] if settings.get("is_causal", getattr(module, "is_causal", True)) is False else []
    if asked:
        raise ValueError(
            f"{type(module).__name__} asks its attention for {', '.join(asked)}; need plain causal attention over the "
            "whole text, without windows, caps, sinks or biases"
        )
    if query.shape[0] != 1 or value.shape != key.shape or key.shape[-1] != query.shape[-1]:
        raise ValueError(
            f"{type(module).__name__}: got query {tuple(query.shape)}, key {tuple(key.shape)}, value "
            f"{tuple(value.shape)}; need one batch row and heads of one width"
        )
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    mixed = bough_attend(int(getattr(module, "layer_idx")), query[0], key[0], value[0], scale)  # noqa: B009
    return mixed.transpose(0, 1).unsqueeze(0), None


def causal(layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """An `Attend` for one sequence: every token sees itself and all before it."""
    del layer
    return torch.nn.functional.scaled_dot_product_attention(
        query[None], key[None], value[None], is_causal=True, scale=scale, enable_gqa=True
    )[0]


# Without a mask function of the same name, transformers builds no mask at all: that is what is wanted here.
_attentions: Any = AttentionInterface
_attentions.register(ATTENTION, hand_over)
