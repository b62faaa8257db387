"""Causal attention within rows laid end to end."""

from collections.abc import Callable
from itertools import groupby
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

Attend: TypeAlias = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]
"""(layer, query [H, U, D], key [K, U, D], value [K, U, D], scale) -> [H, U, D]; positions are already rotated in.

K divides H; query head h reads key head h // (H // K).
"""


def segments(row: Int[Tensor, " offsets"]) -> Attend:
    """Attention in which each token sees itself and what came before it in its row, for use in every layer.

    Neighbouring rows of one length are one batched call, on views: nothing is padded, copied or indexed, and no mask is
    made. (Padding rows of nearly one length to a common one was never faster on a CPU.)

    Args:
        row: Offsets of the rows, as in `Batch.row`.

    Raises:
        ValueError: when there is no row.
    """
    lengths: list[int] = row.diff().cpu().numpy().tolist()
    if not lengths:
        raise ValueError("segments: got no rows; need at least one")
    runs = [(len(list(rows)), length) for length, rows in groupby(lengths)]
    sizes = [count * length for count, length in runs]

    def attend(
        layer: int,
        query: Float[Tensor, "H U D"],
        key: Float[Tensor, "K U D"],
        value: Float[Tensor, "K U D"],
        scale: float,
    ) -> Float[Tensor, "H U D"]:
        del layer
        # One split, not a slice per run: its gradient is one concatenation, not a sum of mostly empty tensors.
        parts = zip(*(torch.split(heads, sizes, dim=1) for heads in (query, key, value)), strict=True)
        mixed: list[Tensor] = []
        for run, part in zip(runs, parts, strict=True):
            q, k, v = (heads.unflatten(1, run).transpose(0, 1) for heads in part)  # [rows, heads, length, D]
            out = scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=len(key) != len(query))
            mixed.append(out.transpose(0, 1).flatten(1, 2))
        return torch.cat(mixed, dim=1)

    return attend
