"""Attention of one pass: tokens of many slots laid end to end, each reading what its slot holds so far."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bough.engine.cache import Cache
from bough.engine.slots import Ints

ROUND_TOKENS = 32
"""Cached lengths are rounded up to a multiple of this: few shapes, aligned masks."""

MOST_WINDOW = 1.5
"""Slots are read in place when so many times their number lie from the first to the last of them."""


class Attention:
    """An `Attend` (see `model`) for one forward pass over a ragged batch.

    Slots that read about equally many new tokens are computed together, padded to the longest of them. Slots that
    decode all read one, so they need no padding.
    """

    def __init__(self, cache: Cache, slots: Ints, first: Ints, count: Ints) -> None:
        """Say what is read.

        Args:
            cache: Keys and values, large enough.
            slots: [B], in the order in which their tokens lie end to end; best with ascending counts.
            first: [B], the position of each slot's first new token.
            count: [B], how many new tokens each slot reads, > 0.
        """
        self._cache, self._slots, self._first, self._count = cache, slots, first, count
        row, offset = ragged(count)
        self._device = cache.keys[0].device
        self._slot, self._position = self._put(slots[row]), self._put(first[row] + offset)
        self._blocks: list[_Block] = []

    def __call__(
        self,
        layer: int,
        query: Float[Tensor, "H U D"],
        key: Float[Tensor, "K U D"],
        value: Float[Tensor, "K U D"],
        scale: float,
    ) -> Float[Tensor, "H U D"]:
        """Write the new keys and values, then attend."""
        if not self._blocks:
            # Every layer follows the same plan; it takes a layer to know how many query heads there are.
            self._blocks = list(self._plan(len(query) // len(key)))
        self._cache.write(layer, self._slot, self._position, key, value)
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        parts = [block.attend(query, keys, values, scale) for block in self._blocks]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _plan(self, queries: int) -> Iterator["_Block"]:
        # Rows whose counts have equally many binary digits share a block, so padding at most doubles the work.
        _, digits = np.frexp(self._count)
        begin = 0
        for rows in np.split(np.arange(len(digits)), np.flatnonzero(np.diff(digits)) + 1):
            block = self._block(self._slots[rows], self._first[rows], self._count[rows], begin, queries)
            begin = block.end
            yield block

    def _block(self, slots: Ints, first: Ints, count: Ints, begin: int, queries: int) -> "_Block":
        begins = begin + np.cumsum(count) - count
        row, offset = ragged(count)
        widest, total, needed = int(count.max()), int(count.sum()), int((first + count).max())
        # Slots that lie close together are read in place, the ones between them for nothing; others are copied.
        lowest = int(slots.min())
        window = int(slots.max()) + 1 - lowest
        in_place = window <= MOST_WINDOW * len(slots)
        rows = window if in_place else len(slots)
        at = slots - lowest if in_place else np.arange(rows)
        # Padding repeats a row's last token, and an idle row reads its first, so no query is without a key.
        last, start, source = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.full(rows, begin)
        last[at], start[at], source[at] = count - 1, first, begins
        step = np.minimum(np.arange(widest), last[:, None])
        position = self._put(np.tile(start[:, None] + step, (1, queries)))[:, None, :, None]
        length = min(-(-needed // ROUND_TOKENS) * ROUND_TOKENS, self._cache.length)
        hidden = torch.arange(length, device=self._device) > position
        mask = torch.zeros(hidden.shape, dtype=self._cache.keys[0].dtype, device=self._device)
        dense = total == widest * rows and bool(np.all(np.diff(at) == 1))
        return _Block(
            begin=begin,
            end=begin + total,
            length=length,
            mask=mask.masked_fill_(hidden, -torch.inf),
            slots=slice(lowest, lowest + window) if in_place else self._put(slots),
            pad=None if dense else self._put(source[:, None] + step).flatten(),
            unpad=None if dense else self._put(at[row] * widest + offset),
        )

    def _put(self, array: Ints) -> Int[Tensor, "..."]:
        return torch.as_tensor(array, device=self._device)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Block:
    """B rows that are attended together, n padded tokens each.

    The H / K query heads that share a key head are laid out as further queries of it: G = (H / K) n.

    Attributes:
        begin: Where their tokens begin in the batch.
        end: Where they end.
        length: L, how many cached tokens are looked at.
        mask: [B, 1, G, L]; 0 where a query may look, -inf elsewhere.
        slots: Whose keys and values; a slice where the slots lie close together, which saves a copy.
        pad: [B n], the token of the batch that each padded token is; None when they are the same.
        unpad: [end - begin], where each token is among the padded ones; None when they are the same.
    """

    begin: int
    end: int
    length: int
    mask: Float[Tensor, "B 1 G L"]
    slots: slice | Int[Tensor, " B"]
    pad: Int[Tensor, " P"] | None
    unpad: Int[Tensor, " T"] | None

    def attend(
        self,
        query: Float[Tensor, "H U D"],
        keys: Float[Tensor, "R K S D"],
        values: Float[Tensor, "R K S D"],
        scale: float,
    ) -> Float[Tensor, "H T D"]:
        heads, kv_heads, rows, width = len(query), keys.shape[1], len(self.mask), query.shape[-1]
        mine = query[:, self.begin : self.end] if self.pad is None else query.index_select(1, self.pad)
        # [H, B n, D] -> [B, K, G, D] and back.
        folded = mine.reshape(kv_heads, heads // kv_heads, rows, -1, width).permute(2, 0, 1, 3, 4).flatten(2, 3)
        mixed = scaled_dot_product_attention(
            folded, self._cached(keys), self._cached(values), attn_mask=self.mask, scale=scale
        )
        out = (
            mixed.reshape(rows, kv_heads, heads // kv_heads, -1, width).permute(1, 2, 0, 3, 4).reshape(heads, -1, width)
        )
        return out if self.unpad is None else out.index_select(1, self.unpad)

    def _cached(self, pages: Float[Tensor, "R K S D"]) -> Float[Tensor, "B K L D"]:
        seen = pages[:, :, : self.length]
        return seen[self.slots] if isinstance(self.slots, slice) else seen.index_select(0, self.slots)


def ragged(count: Ints) -> tuple[Ints, Ints]:
    """The row, and the place in its row, of each of sum(count) tokens laid end to end."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
