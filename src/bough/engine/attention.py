"""Attention of one pass: tokens of many slots laid end to end, each reading what its slot holds so far.

Keys that several slots share are read once, by the queries of all of them. A query then has several parts, each an
average over some of its keys; with lse_i the log of the sum of the exponentials over part i, they merge exactly:

    out = sum_i out_i exp(lse_i - lse),    lse = log sum_i exp(lse_i)
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bough.engine.cache import Cache
from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.plan import Block, Even, plan, ragged
from bough.engine.slots import Ints


class Attention:
    """An `Attend` (see `model`) for one forward pass over a ragged batch."""

    def __init__(self, cache: Cache, pages: Pages, slots: Ints, first: Ints, count: Ints) -> None:
        """Say what is read.

        Args:
            cache: Keys and values, large enough.
            pages: Where they lie, with room for what is read.
            slots: [B], in the order in which their tokens lie end to end.
            first: [B], the position of each slot's first new token.
            count: [B], how many new tokens each slot reads, > 0.
        """
        self._cache = cache
        self._device = cache.keys[0].device
        self._plan = plan(pages, slots, first, count)
        self._places = self._put(self._plan.places)
        self._merge: _Merge | None = None
        self._ready: dict[int | None, list[_Ready]] = {}

    def __call__(
        self,
        layer: int,
        query: Float[Tensor, "H U D"],
        key: Float[Tensor, "K U D"],
        value: Float[Tensor, "K U D"],
        scale: float,
        *,
        window: int | None = None,
    ) -> Float[Tensor, "H U D"]:
        """Write the new keys and values, then attend; with a window, to the last `window` positions alone."""
        heads = len(query)
        # Layers of one window share their masks; it takes a layer to know how many query heads there are.
        if self._merge is None:
            self._merge = self._make_merge(heads)
        if window not in self._ready:
            self._ready[window] = [self._make(block, heads, heads // len(key), window) for block in self._plan.blocks]
        self._cache.write(layer, self._places, key, value)
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        rows = query.reshape(-1, query.shape[-1])
        return self._merge([ready.attend(rows, keys, values, scale) for ready in self._ready[window]])

    def _make_merge(self, heads: int) -> "_Merge":
        blocks, parts = self._plan.blocks, self._plan.parts
        # Query c of stretch i, head h, is row (i H + h) n + c of the N H n rows of its block.
        widths = np.repeat([block.token.shape[1] for block in blocks], [len(block.token) for block in blocks])
        row, column = ragged(widths)
        width = widths[row]
        first = heads * (np.arange(len(width)) - column) + column
        rows = first[parts] + np.arange(heads)[:, None, None] * width[parts]
        missing = parts < 0
        return _Merge(
            rows=self._put(rows),
            missing=self._put(missing) if missing.any() else None,
        )

    def _make(self, block: Block, heads: int, group: int, window: int | None) -> "_Ready":
        key_position, last = self._put(block.key_position)[:, None], self._put(block.last)
        if window is None and bool((block.last == block.last[:, :1]).all()):
            hidden = key_position > last[:, :1, None]
        else:
            hidden = key_position > last.repeat(1, group)[..., None]
        if window is not None:
            hidden |= key_position <= (self._put(block.position).repeat(1, group) - window)[..., None]
        dtype = self._cache.keys[0].dtype
        # Finite, so that a query which sees nothing of a part gets weight 0 and not nan.
        mask = torch.zeros(hidden.shape, dtype=dtype, device=self._device).masked_fill_(
            hidden, torch.finfo(dtype).min / 2
        )
        stretches, queries = block.token.shape
        rows = np.arange(heads)[:, None] * len(self._plan.places) + block.token[:, None]
        place = block.place
        return _Ready(
            shape=(stretches, heads // group, group * queries),
            keys=block.key_position.shape[1],
            rows=self._put(rows.ravel()),
            mask=mask[:, None] if bool(hidden.any()) else None,
            place=place if isinstance(place, Even) else self._put(place.pages.ravel()),
            with_lse=self._plan.parts.shape[1] > 1,
        )

    def _put(self, array: Ints | NDArray[np.bool_]) -> Tensor:
        return torch.as_tensor(array, device=self._device)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Merge:
    """How the parts of every token and head are put together.

    Attributes:
        rows: [H, U, M], the row of each part among those of all blocks.
        missing: [U, M], where a token has fewer parts than others; None when nowhere.
    """

    rows: Int[Tensor, "H U M"]
    missing: Bool[Tensor, "U M"] | None

    def __call__(self, parts: list[tuple[Float[Tensor, "_ D"], Float[Tensor, " _"]]]) -> Float[Tensor, "H U D"]:
        heads, tokens, many = self.rows.shape
        out = parts[0][0] if len(parts) == 1 else torch.cat([out for out, _ in parts])
        rows = self.rows.view(-1)
        each = out.index_select(0, rows)
        if many == 1:
            return each.view(heads, tokens, -1)
        lse = torch.cat([lse for _, lse in parts]).index_select(0, rows).view(heads, tokens, many)
        if self.missing is not None:
            lse = lse.masked_fill_(self.missing, -torch.inf)
        weight = lse.softmax(-1).to(out.dtype)
        return torch.bmm(weight.view(-1, 1, many), each.view(heads * tokens, many, -1)).view(heads, tokens, -1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ready:
    """A block, as a device wants it.

    The H / K query heads that share a key head are laid out as further queries of it: G = (H / K) n.

    Attributes:
        shape: N, K, G.
        keys: L.
        rows: [N K G], the row of each query among those [H U] of the pass.
        mask: [N, 1, G or 1, L]; 0 where a query may look, very negative elsewhere; None where all look at all.
        place: Where keys and values are read in place; else [P], the pages that are copied together.
        with_lse: Whether there is something to merge.
    """

    shape: tuple[int, int, int]
    keys: int
    rows: Int[Tensor, " Q"]
    mask: Float[Tensor, "N 1 #G L"] | None
    place: Even | Int[Tensor, " P"]
    with_lse: bool

    def attend(
        self, query: Float[Tensor, "R D"], keys: Float[Tensor, "K T D"], values: Float[Tensor, "K T D"], scale: float
    ) -> tuple[Float[Tensor, "Q D"], Float[Tensor, " Q"]]:
        mine = query.index_select(0, self.rows).view(*self.shape, -1)
        mine_keys, mine_values = self._cached(keys), self._cached(values)
        if self.with_lse:
            mixed, lse = attend(mine, mine_keys, mine_values, self.mask, scale)
        else:
            mixed = scaled_dot_product_attention(mine, mine_keys, mine_values, attn_mask=self.mask, scale=scale)
            lse = mixed[..., 0]
        return mixed.reshape(-1, mixed.shape[-1]), lse.reshape(-1)

    def _cached(self, pool: Float[Tensor, "K T D"]) -> Float[Tensor, "N K L D"]:
        heads, _, width = pool.shape
        if isinstance(self.place, Even):
            page = PAGE_TOKENS * width
            strides = (self.place.step * page, pool.stride(0), width, 1)
            return pool.as_strided((self.shape[0], heads, self.keys, width), strides, self.place.first * page)
        pages = pool.reshape(heads, -1, PAGE_TOKENS * width).index_select(1, self.place)
        return pages.reshape(heads, self.shape[0], -1, width)[:, :, : self.keys].transpose(0, 1)


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
