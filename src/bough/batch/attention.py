"""Attention over a chunk of a packed prefix tree: by a C++ kernel on a CPU, FlexAttention on CUDA, else by masks."""

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bough.batch.chunk import Chunk
from bough.batch.flex_attention import Mask, attention_choice, block_mask, flex_attention, uses_flex
from bough.batch.kv_store import KVPrefix
from bough.kernels.masked_attention import masked_attention
from bough.kernels.tree_attention import KeyRuns, tree_attention, tree_kernel


@runtime_checkable
class Attend(Protocol):
    """Attention, computed by the caller of the model."""

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
        """Softmax attention, after the rotary embedding.

        K divides H; query head h reads key head h // (H // K).

        Args:
            layer: The layer's number.
            query: [H, n, D].
            key: [K, n, D].
            value: [K, n, D].
            scale: Multiplies the scores.
            window: The most tokens of its text that a query sees, itself included; None is all.
        """
        ...


class ChunkAttention:
    """Attention of a chunk's n tokens to its prefix and itself, in every layer.

    What depends on the chunk alone is computed once for all layers with the same window.
    """

    def __init__(self, chunk: Chunk) -> None:
        self._chunk, self._deepest = chunk, int(chunk.position.max())
        self._masks: dict[int | None, list[tuple[slice, slice, Tensor]]] = {}
        self._blocks: dict[int | None, Mask] = {}
        self._runs: KeyRuns | None = None

    def __call__(
        self,
        query: Float[Tensor, "H n D"],
        key: Float[Tensor, "K n D"],
        value: Float[Tensor, "K n D"],
        scale: float,
        window: int | None = None,
        prefix: KVPrefix | None = None,
    ) -> Float[Tensor, "H n D"]:
        """Softmax attention to the keys of the prefix and of the chunk.

        A query sees at most `window` tokens of its text, or all.
        """
        chunk = self._chunk
        window = None if window is None or window > self._deepest else window
        flex = uses_flex(query, len(chunk.position))
        code = None if flex else _kernel(query)
        if code is not None:
            self._runs = self._runs or KeyRuns(chunk.runs, chunk.position, len(chunk.past))
            return tree_attention(code, self._runs, query, key, value, prefix, scale, window)
        if prefix is not None:
            key, value = (torch.cat(both, dim=1) for both in zip(prefix.leaves(), (key, value), strict=True))
        if flex:
            if window not in self._blocks:
                self._blocks[window] = block_mask(chunk, window, query.device)
            return flex_attention(query, key, value, self._blocks[window], scale)
        if window not in self._masks:
            self._masks[window] = list(_masks(chunk, window, query.device))
        parts = [
            masked_attention(query[None, :, queries], key[None, :, keys], value[None, :, keys], mask, scale)[0]
            for queries, keys, mask in self._masks[window]
        ]
        return torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]


def needs_masks(query: Float[Tensor, "H n D"], keys: int) -> bool:
    """Whether attention of these queries to so many keys makes dense masks."""
    return not uses_flex(query, keys) and _kernel(query) is None


def _kernel(query: Float[Tensor, "H n D"]) -> ctypes.CDLL | None:
    """The C++ kernel for these queries, if there is one."""
    if query.device.type != "cpu" or attention_choice() == "masks":
        return None
    return tree_kernel(query.dtype, query.shape[2])


def _masks(
    chunk: Chunk, window: int | None, device: torch.device
) -> Iterator[tuple[slice, slice, Bool[Tensor, "q k"]]]:
    """The queries, the keys and the mask of each tree in a chunk: trees do not see each other."""
    past, whole = len(chunk.past), sees(chunk, window, device)
    roots = np.flatnonzero(chunk.position[past:] == 0).tolist()
    # The tree that began before the chunk comes first, with the keys of the prefix.
    for first, last in pairwise(sorted({0, *roots, len(chunk)})):
        keys = slice(0 if first == 0 else past + first, past + last)
        yield slice(first, last), keys, whole[first:last, keys]


def sees(chunk: Chunk, window: int | None, device: torch.device) -> Bool[Tensor, "n m"]:
    """The mask of a chunk: which of the m keys, the prefix first, each of the n queries sees."""
    past = len(chunk.past)
    key = torch.arange(-past, len(chunk), device=device)
    query = key[past:, None]
    mask = (key <= query) & (query < torch.as_tensor(chunk.end, device=device))
    if window is not None:
        depth = torch.as_tensor(chunk.position, device=device)
        mask &= depth[past:, None] - depth < window
    return mask
