"""Hands a transformers model's attention to its caller, so that tokens of many sequences can lie end to end."""

from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn
from transformers import AttentionInterface


@runtime_checkable
class Attend(Protocol):
    """Attention, done by whoever laid the tokens out."""

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        """(layer, query [H, U, D], key [K, U, D], value [K, U, D], scale) -> [H, U, D]; positions are rotated in.

        K divides H; query head h reads key head h // (H // K). Of its text a query sees the last `window` tokens,
        itself among them, or all.
        """
        ...


class Asked:
    """What is asked of a model besides its tokens: one object of one class, or compiled layers would be made anew.

    Attributes:
        attend: Does the attention.
        wanted: [m], the rows that are wanted of the last layer; None is all.
        last: Attends there instead of `attend`, if given, and answers for the wanted rows alone.
        attended: [H, U, D], what `attend` would say, where that is known.
    """

    def __init__(
        self,
        attend: Attend,
        wanted: Tensor | None = None,
        last: Attend | None = None,
        attended: Tensor | None = None,
    ) -> None:
        self.attend, self.wanted, self.last, self.attended = attend, wanted, last, attended


ATTENTION = "bough"
"""The name under which a transformers model finds `hand_over` (`attn_implementation`)."""

APART = "bough_apart"
"""The name of the same for layers that are compiled one by one: it is left to the caller, and not compiled."""

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
    sliding_window: int | None = None,
    bough: Asked | None = None,
    **settings: object,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it, done by who was given to the model's forward pass.

    Args:
        module: The layer; its `layer_idx` is the layer that is told.
        query: [1, H, U, D].
        key: [1, K, U, D].
        value: [1, K, U, D].
        attention_mask: None; which token sees which is the caller's business.
        scaling: Multiplies the scores; None means D ** -0.5.
        dropout: 0.
        sliding_window: How many tokens a query sees at most, itself included.
        bough: Says who does the work.
        settings: Anything else a model tells its attention.

    Returns:
        [1, U, H, D], and no attention weights.

    Raises:
        ValueError: when the model asks for what nobody would do (capped scores, sinks, a mask).
    """
    if bough is None:
        raise ValueError(
            f"{type(module).__name__}: got nobody who attends; need a model that hands its attention what it is told"
        )
    asked = [
        name for name, value in settings.items() if name not in HARMLESS and value is not None and value is not False
    ]
    asked += ["attention_mask"] if attention_mask is not None else []
    asked += ["dropout"] if dropout else []
    asked += ["is_causal=False"] if settings.get("is_causal", getattr(module, "is_causal", True)) is False else []
    if asked:
        raise ValueError(
            f"{type(module).__name__} asks its attention for {', '.join(asked)}; need causal attention without "
            "caps, sinks or biases"
        )
    if query.shape[0] != 1 or value.shape != key.shape or key.shape[-1] != query.shape[-1]:
        raise ValueError(
            f"{type(module).__name__}: got query {tuple(query.shape)}, key {tuple(key.shape)}, value "
            f"{tuple(value.shape)}; need one batch row and heads of one width"
        )
    mixed = bough.attended
    if mixed is None:
        scale = scaling if scaling is not None else query.shape[-1] ** -0.5
        layer = int(getattr(module, "layer_idx"))  # noqa: B009
        mixed = bough.attend(layer, query[0], key[0], value[0], scale, window=sliding_window)
    # As the model is about to lay it out anyway; a compiled layer is made anew for every other layout.
    return mixed.transpose(0, 1).unsqueeze(0).contiguous(), None


def causal(layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None) -> Tensor:
    """An `Attend` for one sequence: every token sees itself and those before it."""
    del layer
    place = torch.arange(query.shape[1], device=query.device)
    back = place[:, None] - place
    sees = (back >= 0) if window is None else (back >= 0) & (back < window)
    return torch.nn.functional.scaled_dot_product_attention(
        query[None], key[None], value[None], attn_mask=sees, scale=scale, enable_gqa=True
    )[0]


# Without a mask function of the same name, transformers builds no mask at all: that is what is wanted here.
_attentions, _compiler = cast("Any", AttentionInterface), cast("Any", torch.compiler)
_attentions.register(ATTENTION, hand_over)
_attentions.register(APART, _compiler.disable(hand_over))
