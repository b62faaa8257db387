"""Attention of one pass: tokens of many slots laid end to end, each reading what its slot holds so far.

Keys that several slots share are read once, by the queries of all of them. A query then has several parts, each an
average over some of its keys; with lse_i the log of the sum of the exponentials over part i, they merge exactly:

    out = sum_i out_i exp(lse_i - lse),    lse = log sum_i exp(lse_i)
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from bough.engine.cache import Cache
from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.plan import Block, Even, plan
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
        self._plan = plan(pages, slots, first, count)
        self._device = cache.keys[0].device
        self._places = self._put(self._plan.places)
        self._parts = self._put(self._plan.parts)
        self._whole = self._plan.parts.shape[1] == 1
        queries = sum(block.token.size for block in self._plan.blocks)
        in_order = self._whole and np.array_equal(self._plan.parts[:, 0], np.arange(queries))
        self._order = None if in_order else self._parts.flatten()
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
        if window not in self._ready:
            # Layers of one window share their masks; it takes a layer to know how many query heads there are.
            self._ready[window] = [self._make(block, len(query) // len(key), window) for block in self._plan.blocks]
        self._cache.write(layer, self._places, key, value)
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        got = [ready.attend(query, keys, values, scale, with_lse=not self._whole) for ready in self._ready[window]]
        outs = [out for out, _ in got]
        out = outs[0] if len(outs) == 1 else torch.cat(outs, dim=1)
        if self._whole:
            return out if self._order is None else out.index_select(1, self._order)
        return self._merge(out, torch.cat([lse for _, lse in got], dim=1))

    def _merge(self, out: Float[Tensor, "H P D"], lse: Float[Tensor, "H P"]) -> Float[Tensor, "H U D"]:
        # Where a token has fewer parts than others, its place holds any part with weight 0.
        chosen = lse[:, self._parts].masked_fill_(self._parts < 0, -torch.inf)
        weight = chosen.softmax(-1).to(out.dtype)
        heads, tokens, parts = weight.shape
        each = out[:, self._parts].reshape(heads * tokens, parts, -1)
        return torch.bmm(weight.reshape(heads * tokens, 1, parts), each).reshape(heads, tokens, -1)

    def _make(self, block: Block, queries: int, window: int | None) -> "_Ready":
        key_position, last = self._put(block.key_position)[:, None], self._put(block.last)
        if window is None and bool((block.last == block.last[:, :1]).all()):
            hidden = key_position > last[:, :1, None]
        else:
            hidden = key_position > last.repeat(1, queries)[..., None]
        if window is not None:
            hidden |= key_position <= (self._put(block.position).repeat(1, queries) - window)[..., None]
        dtype = self._cache.keys[0].dtype
        # Finite, so that a query which sees nothing of a part gets weight 0 and not nan.
        mask = torch.zeros(hidden.shape, dtype=dtype, device=self._device).masked_fill_(
            hidden, torch.finfo(dtype).min / 2
        )
        place = block.place
        return _Ready(
            stretches=len(block.token),
            keys=block.key_position.shape[1],
            token=self._put(block.token.ravel()),
            mask=mask[:, None] if bool(hidden.any()) else None,
            place=place if isinstance(place, Even) else self._put(place.pages.ravel()),
        )

    def _put(self, array: Ints) -> Int[Tensor, "..."]:
        return torch.as_tensor(array, device=self._device)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ready:
    """A block, as a device wants it.

    The H / K query heads that share a key head are laid out as further queries of it: G = (H / K) n.

    Attributes:
        stretches: N.
        keys: L.
        token: [N n], the token of the pass that each query is.
        mask: [N, 1, G or 1, L]; 0 where a query may look, very negative elsewhere; None where all look at all.
        place: Where keys and values are read in place; else [P], the pages that are copied together.
    """

    stretches: int
    keys: int
    token: Int[Tensor, " Q"]
    mask: Float[Tensor, "N 1 G L"] | None
    place: Even | Int[Tensor, " P"]

    def attend(
        self,
        query: Float[Tensor, "H U D"],
        keys: Float[Tensor, "K T D"],
        values: Float[Tensor, "K T D"],
        scale: float,
        *,
        with_lse: bool,
    ) -> tuple[Float[Tensor, "H Q D"], Float[Tensor, "H Q"]]:
        heads, kv_heads, rows, width = len(query), len(keys), self.stretches, query.shape[-1]
        # [H, N n, D] -> [N, K, G, D] and back.
        mine = query.index_select(1, self.token)
        folded = mine.reshape(kv_heads, heads // kv_heads, rows, -1, width).permute(2, 0, 1, 3, 4).flatten(2, 3)
        mine_keys, mine_values = self._cached(keys), self._cached(values)
        if with_lse:
            mixed, lse = attend(folded, mine_keys, mine_values, self.mask, scale)
        else:
            mixed = scaled_dot_product_attention(folded, mine_keys, mine_values, attn_mask=self.mask, scale=scale)
            lse = mixed[..., 0]
        shape = (rows, kv_heads, heads // kv_heads, -1)
        out = mixed.reshape(*shape, width).permute(1, 2, 0, 3, 4).reshape(heads, -1, width)
        return out, lse.reshape(shape).permute(1, 2, 0, 3).reshape(heads, -1)

    def _cached(self, pool: Float[Tensor, "K T D"]) -> Float[Tensor, "N K L D"]:
        heads, _, width = pool.shape
        if isinstance(self.place, Even):
            page = PAGE_TOKENS * width
            strides = (self.place.step * page, pool.stride(0), width, 1)
            return pool.as_strided((self.stretches, heads, self.keys, width), strides, self.place.first * page)
        pages = pool.reshape(heads, -1, PAGE_TOKENS * width).index_select(1, self.place)
        return pages.reshape(heads, self.stretches, -1, width)[:, :, : self.keys].transpose(0, 1)


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
