"""Attention of one pass by operations of torch, where there is no machine code of our own.

Keys that several slots share are read once, by the queries of all of them. A query then has several parts, each an
average over some of its keys; with lse_i the log of the sum of the exponentials over part i, they merge exactly:

    out = sum_i out_i exp(lse_i - lse),    lse = log sum_i exp(lse_i)

which is done one part after the other: the second of two weighs sigmoid(lse_2 - lse_1).
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bough.engine.attention import Attention
from bough.engine.cache import Cache
from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.plan import CHUNK_TOKENS, Block, Even, plan
from bough.engine.slots import Ints


class BlockAttention(Attention):
    """Attention by operations of torch, on any device."""

    def __init__(self, cache: Cache, pages: Pages, slots: Ints, first: Ints, count: Ints) -> None:
        """See `Attention`."""
        super().__init__(cache, pages, slots, first, count)
        self._device, self._seen = cache.keys[0].device, cache.keys[0].new_zeros(())
        self._plan = plan(self._found, len(pages.readers))
        self._places = self._put(self._found.place)
        self._merge = self._make_merge()
        self._ready: dict[int | None, list[_Ready]] = {}
        self._group = 1

    def _of(self, slots: Ints, first: Ints, count: Ints) -> Attention:
        return type(self)(self._cache, self._pages, slots, first, count)

    def _room(self) -> int:
        return min(super()._room(), self._plan.onward()) if list(self._ready) == [None] else 0

    def _go_on(self) -> None:
        self._places += 1
        for ready in self._ready[None]:
            if ready.mask is not None and ready.newest is not None:
                ready.newest.add_(1)
                ready.mask.view(-1).index_fill_(0, ready.newest, 0.0)

    def _write(self, layer: int, key: Float[Tensor, "K U D"], value: Float[Tensor, "K U D"]) -> None:
        self._cache.write(layer, self._places, key, value)

    def _look(self, layer: int, query: Float[Tensor, "H U D"], scale: float, window: int | None) -> Tensor:
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        heads, kv_heads = len(query), len(keys)
        # It takes a layer to know how many query heads share a key head.
        group = self._group = heads // kv_heads
        # Layers of one window share their masks.
        if window not in self._ready:
            self._ready[window] = [self._make(block, window) for block in self._plan.blocks]
        # Token by token, and the heads that share a key head apart: so a block's queries are whole rows.
        tokens, width = query.shape[1:]
        rows = query.view(kv_heads, group, tokens, width).permute(2, 1, 0, 3).contiguous()
        merged = self._merge([ready.attend(rows, keys, values, scale) for ready in self._ready[window]])
        merged = merged.view(tokens, group, kv_heads, width).transpose(1, 2)
        return merged.reshape(tokens, heads, width).transpose(0, 1)

    def _make_merge(self) -> "_Merge":
        parts = self._plan.parts
        sizes = [block.token.size for block in self._plan.blocks]
        ends = np.cumsum(sizes)
        columns: list[_Column] = []
        for part in parts.T:
            first, last = map(int, np.searchsorted(ends, [part.clip(0).min(), part.max()], side="right"))
            block = first if first == last else None
            begin = 0 if block is None else int(ends[block]) - sizes[block]
            columns.append(
                _Column(
                    block=block,
                    rows=self._rows(part.clip(begin) - begin, sum(sizes) if block is None else sizes[block]),
                    missing=self._put(part[:, None] < 0) if part.min() < 0 else None,
                )
            )
        return _Merge(columns=tuple(columns))

    def _make(self, block: Block, window: int | None) -> "_Ready":
        mask: Tensor | None = None
        newest: Tensor | None = None
        if window is not None or (block.key_position.max(axis=1) > block.last.min(axis=1)).any():
            mask, newest = self._mask(block, window)
        place = block.place
        return _Ready(
            stretches=len(block.token),
            keys=block.key_position.shape[1],
            tokens=self._rows(block.token.ravel(), len(self._found.place)),
            mask=mask,
            newest=newest,
            place=place if isinstance(place, Even) else self._put(_chunks(place.pages, block.key_position.shape[1])),
            with_lse=self._plan.parts.shape[1] > 1,
        )

    def _mask(self, block: Block, window: int | None) -> tuple[Float[Tensor, "N 1 #G L"], Int[Tensor, " k"] | None]:
        """The mask of a block and, where all slots decode, the places in it of the queries' own keys."""
        last, own, position = (array[..., None] for array in (block.last, block.own, block.position))
        group, keys = self._group, block.key_position[:, None]
        if window is None and (last == last[:, :1]).all() and (own == own[:, :1]).all():
            last, own, group = last[:, :1], own[:, :1], 1
        hidden = keys > last
        if window is not None:
            hidden |= keys <= position - window
        # Finite, so that a query which sees nothing of a part gets weight 0 and not nan.
        low = torch.finfo(self._seen.dtype).min / 2
        each = self._put(hidden)[:, :, None].expand(-1, -1, group, -1)
        mask = torch.where(each, self._seen.new_tensor(low), self._seen).view(len(hidden), 1, -1, hidden.shape[2])
        if not self._decodes:
            return mask, None
        return mask, self._put(np.flatnonzero(np.repeat((keys == last) & own, group, axis=1)))

    def _rows(self, rows: Ints, of: int) -> "slice | Tensor | None":
        """Some rows of so many, None for all: those that lie one behind the other need no copy."""
        if not (np.diff(rows) == 1).all():
            return self._put(rows)
        return None if len(rows) == of else slice(int(rows[0]), int(rows[-1]) + 1)

    def _put(self, array: Ints | NDArray[np.bool_]) -> Tensor:
        return torch.as_tensor(array, device=self._device)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Column:
    """One part of every token of U.

    Attributes:
        block: The block that all of them are of; None where they are of several.
        rows: [U], their rows in that block, else among those of all blocks; None where they are all there are.
        missing: [U, 1], which tokens have fewer parts; None when none has.
    """

    block: int | None
    rows: slice | Int[Tensor, " U"] | None
    missing: Bool[Tensor, "U 1"] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Merge:
    """How the parts of every token are put together.

    Attributes:
        columns: The parts; of the first no token has none.
    """

    columns: tuple[_Column, ...]

    def __call__(self, parts: list[tuple[Float[Tensor, "_ H D"], Float[Tensor, "_ H"]]]) -> Float[Tensor, "U H D"]:
        whole = parts[0]
        if len(parts) > 1 and any(column.block is None for column in self.columns):
            whole = tuple(torch.cat(each) for each in zip(*parts, strict=True))
        merged, so_far = torch.empty(0), torch.empty(0)
        for number, column in enumerate(self.columns):
            of = whole if column.block is None else parts[column.block]
            out, lse = (_taken(each, column.rows) for each in of)
            if column.missing is not None:
                lse = lse.masked_fill(column.missing, -torch.inf)
            if not number:
                merged, so_far = out, lse
                continue
            merged = merged.lerp(out, (lse - so_far).sigmoid_().to(out.dtype).unsqueeze(-1))
            if number + 1 < len(self.columns):
                so_far = torch.logaddexp(so_far, lse)
        return merged


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ready:
    """A block, as a device wants it.

    The H / K query heads that share a key head are laid out as further queries of it: G = n (H / K).

    Attributes:
        stretches: N.
        keys: L.
        tokens: Q = N n, the token of each query; None where they are all of the pass, in order.
        mask: [N, 1, G or 1, L]; 0 where a query may look, very negative elsewhere; None where all look at all.
        newest: [k], where in the mask the keys are that queries see of themselves; None without a mask, or if nobody
            asks.
        place: Where keys and values are read in place; else [C], the chunks of pages that are copied together.
        with_lse: Whether there is something to merge.
    """

    stretches: int
    keys: int
    tokens: slice | Int[Tensor, " Q"] | None
    mask: Float[Tensor, "N 1 #G L"] | None
    newest: Int[Tensor, " k"] | None
    place: Even | Int[Tensor, " C"]
    with_lse: bool

    def attend(
        self,
        query: Float[Tensor, "U g K D"],
        keys: Float[Tensor, "K T D"],
        values: Float[Tensor, "K T D"],
        scale: float,
    ) -> tuple[Float[Tensor, "Q H D"], Float[Tensor, "Q H"]]:
        _, group, heads, width = query.shape
        mine = _taken(query, self.tokens).view(self.stretches, -1, heads, width).transpose(1, 2)
        mine_keys, mine_values = self._cached(keys), self._cached(values)
        if self.with_lse:
            mixed, lse = attend(mine, mine_keys, mine_values, self.mask, scale)
        else:
            mixed = scaled_dot_product_attention(mine, mine_keys, mine_values, attn_mask=self.mask, scale=scale)
            lse = mixed[..., 0]
        tokens = self.stretches * mine.shape[2] // group
        # As they lie in memory.
        return mixed.transpose(1, 2).reshape(tokens, -1, width), lse.transpose(1, 2).reshape(tokens, -1)

    def _cached(self, pool: Float[Tensor, "K T D"]) -> Float[Tensor, "N K L D"]:
        heads, _, width = pool.shape
        if isinstance(self.place, Even):
            page = PAGE_TOKENS * width
            strides = (self.place.step * page, pool.stride(0), width, 1)
            return pool.as_strided((self.stretches, heads, self.keys, width), strides, self.place.first * page)
        chunks = pool.view(heads, -1, CHUNK_TOKENS * width).index_select(1, self.place)
        return chunks.view(heads, self.stretches, self.keys, width).transpose(0, 1)


def _chunks(pages: Ints, keys: int) -> Ints:
    """The chunks of the cache that hold so many keys of N stretches, given the pages [N, M] of each."""
    per_page = PAGE_TOKENS // CHUNK_TOKENS
    chunks = pages[..., None] * per_page + np.arange(per_page)
    return chunks.reshape(len(pages), -1)[:, : keys // CHUNK_TOKENS].ravel()


def _taken(tensor: Tensor, rows: slice | Tensor | None) -> Tensor:
    if rows is None:
        return tensor
    return tensor[rows] if isinstance(rows, slice) else tensor.index_select(0, rows)


def attend(
    query: Float[Tensor, "N K G D"],
    key: Float[Tensor, "N K L D"],
    value: Float[Tensor, "N K L D"],
    mask: Float[Tensor, "N 1 #G L"] | None,
    scale: float,
) -> tuple[Float[Tensor, "N K G D"], Float[Tensor, "N K G"]]:
    """Attention, and the natural log of the sum of the exponentials of the scores, float32 or better."""
    if query.device.type == "cpu":
        # What scaled_dot_product_attention calls on CPU; it alone gives the sum away.
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, False, attn_mask=mask, scale=scale
        )
    return written_out(query, key, value, mask, scale)


def written_out(
    query: Float[Tensor, "N K G D"],
    key: Float[Tensor, "N K L D"],
    value: Float[Tensor, "N K L D"],
    mask: Float[Tensor, "N 1 #G L"] | None,
    scale: float,
) -> tuple[Float[Tensor, "N K G D"], Float[Tensor, "N K G"]]:
    """The same as `attend`, for any device."""
    score = (query @ key.transpose(-1, -2)).to(torch.promote_types(query.dtype, torch.float32)) * scale
    if mask is not None:
        score = score + mask
    lse = score.logsumexp(-1)
    return (score - lse[..., None]).exp().to(value.dtype) @ value, lse
