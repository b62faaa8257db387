"""Attention over a stretch of a forest: who sees whom, and by which kernel."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bough.batch.cascade import cascade
from bough.batch.glances import Glance, glances
from bough.batch.kept import Past
from bough.batch.native import Runs, kernel, native
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


class Attention:
    """Attention of a stretch's n tokens to its past and itself, in every layer.

    On a CPU machine code of our own or, where there is none, a cascade of flash kernels; on CUDA FlexAttention. Besides
    these two a dense mask, where there are few tokens, or a window shorter than the texts. What is made to attend is
    made once for all layers with the same window.
    """

    def __init__(self, stretch: Stretch) -> None:
        self._stretch, self._deepest = stretch, int(stretch.position.max())
        self._masks: dict[int | None, Tensor] = {}
        self._blocks: dict[int | None, Any] = {}
        self._runs: Runs | None = None
        self._glances: Sequence[Glance] | None = None

    def __call__(
        self,
        query: Float[Tensor, "H n D"],
        key: Float[Tensor, "K n D"],
        value: Float[Tensor, "K n D"],
        scale: float,
        window: int | None = None,
        past: Past | None = None,
    ) -> Float[Tensor, "H n D"]:
        """Mix values by how much queries care for keys, those of the past among them.

        A query sees at most `window` tokens of its text, or all.
        """
        stretch, device = self._stretch, query.device
        seen = None if window is None or window > self._deepest else window
        code = kernel(query.dtype, query.shape[2]) if device.type == "cpu" else None
        if code is not None:
            self._runs = self._runs or Runs(stretch)
            return native(code, self._runs, query, key, value, past, scale, seen)
        if past is not None:
            key, value = (torch.cat(both, dim=1) for both in zip(past.leaves(), (key, value), strict=True))
        pairs = query.shape[1] * key.shape[1]
        if device.type == "cuda" and pairs > DENSE_PAIRS:
            from bough.batch.flex import block_mask, flex

            if seen not in self._blocks:
                self._blocks[seen] = block_mask(stretch, seen, device)
            return flex(query, key, value, scale, self._blocks[seen])
        if seen is None and device.type == "cpu" and (len(stretch.runs) == 1 or pairs > DENSE_PAIRS):
            self._glances = self._glances or glances(stretch)
            return cascade(self._glances, query, key, value, scale)
        if seen not in self._masks:
            self._masks[seen] = sees(stretch, seen, device)
        mask = self._masks[seen]
        return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=True)


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
