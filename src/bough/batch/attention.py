"""Attention over a stretch of a forest: who sees whom, and by which kernel."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bough.batch.cascade import cascade
from bough.batch.stretch import Stretch

DENSE_PAIRS = 64 * 64
"""A mask of at most so many pairs costs less than several calls."""


@runtime_checkable
class Attend(Protocol):
    """Attention, done by whoever laid the tokens out."""

    def __call__(
        self,
        layer: int,
        query: Float[Tensor, "H n D"],
        key: Float[Tensor, "K n D"],
        value: Float[Tensor, "K n D"],
        scale: float,
        *,
        window: int | None = None,
    ) -> Float[Tensor, "H n D"]:
        """Mix values by how much queries care for keys; positions are already rotated in.

        K divides H; query head h reads key head h // (H // K).

        Args:
            layer: Which layer asks.
            query: [H, n, D].
            key: [K, n, D].
            value: [K, n, D].
            scale: Of the scores.
            window: How many tokens a query sees at most, itself included and counted along its text; None is all.
        """
        ...


def attention(
    stretch: Stretch,
    query: Float[Tensor, "H n D"],
    key: Float[Tensor, "K m D"],
    value: Float[Tensor, "K m D"],
    scale: float,
    window: int | None = None,
) -> Float[Tensor, "H n D"]:
    """Attention of a stretch's n tokens to its past and itself, m tokens.

    On a CPU a cascade of flash kernels; on CUDA FlexAttention; a dense mask where there are few tokens, or a window
    shorter than the texts.
    """
    windowed = window is not None and window <= int(stretch.position.max())
    if query.device.type == "cuda" and len(stretch) > DENSE_PAIRS**0.5:
        from bough.batch.flex import flex

        return flex(stretch, query, key, value, scale, window if windowed else None)
    lonely = len(stretch.glances) == 1
    if windowed or not (query.device.type == "cpu" and (lonely or query.shape[1] * key.shape[1] > DENSE_PAIRS)):
        mask = sees(stretch, window if windowed else None, query.device)
        return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=True)
    return cascade(stretch.glances, query, key, value, scale)


def sees(stretch: Stretch, window: int | None, device: torch.device) -> Bool[Tensor, "n m"]:
    """Which key each query sees, as a mask of n x m."""
    past = len(stretch.past)
    key = torch.arange(-past, len(stretch), device=device)
    query = key[past:, None]
    mask = (key <= query) & (query < torch.as_tensor(stretch.end, device=device))
    if window is not None:
        depth = torch.as_tensor(stretch.position, device=device)
        mask &= depth[past:, None] - depth < window
    return mask
