"""Attention of one forward pass over the paged KV cache: by a C++ kernel on a CPU, else by PyTorch's operations."""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bough.engine.kv_cache import KVCache
from bough.engine.model import Attend, Model
from bough.engine.page_runs import LAST_PAGE, page_runs
from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.slots import Ints
from bough.kernels.masked_attention import masked_attention
from bough.kernels.paged_attention import ARRAYS, PagedKernel, paged_kernel


class PagedAttention(ABC):
    """An `Attend` (see `model`) for one forward pass over a ragged batch."""

    def __init__(self, cache: KVCache, pages: Pages, slots: Ints, first: Ints, count: Ints) -> None:
        """Plan the pass.

        Args:
            cache: Keys and values, large enough.
            pages: The page table, with pages for the new tokens.
            slots: [B], in the order of their concatenated tokens.
            first: [B], the position of each slot's first new token.
            count: [B], the number of new tokens of each slot, > 0.
        """
        self._cache, self._pages = cache, pages
        self._slots, self._first, self._count = slots, first, count

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
        """Write the new keys and values, then attend; with a window, to the last `window` positions."""
        self._write(layer, key, value)
        return self._attend(layer, query, scale, window)

    def last(self, slots: Ints, position: Ints, rows: Ints) -> "tuple[PagedAttention, Attend]":
        """Attention of the slots' last tokens alone, which are `rows` [m] of the pass.

        Returns:
            Attention that can `advance` to the next token, and an `Attend` for the last layer of this pass.
        """
        few = self._for(slots, position, np.ones_like(position))
        at: Int[Tensor, " m"] = torch.as_tensor(rows, device=self._cache.keys[0].device)

        def attend(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            self._write(layer, key, value)
            return few._attend(layer, query.index_select(1, at), scale, window)

        return few, attend

    @abstractmethod
    def advance(self) -> bool:
        """Move on to a pass with one more token per slot, without a new plan. This pass must have one token per slot.

        Returns False when a new plan is needed; discard this object then. Pages must not have changed in between.
        """

    @abstractmethod
    def _for(self, slots: Ints, first: Ints, count: Ints) -> "PagedAttention":
        """Attention of the same class for another pass over the same pages."""

    @abstractmethod
    def _write(self, layer: int, key: Float[Tensor, "K U D"], value: Float[Tensor, "K U D"]) -> None:
        """Write new keys and values into the cache."""

    @abstractmethod
    def _attend(self, layer: int, query: Float[Tensor, "H U D"], scale: float, window: int | None) -> Tensor:
        """Attention of the queries, [H, U, D]."""


@runtime_checkable
class MakeAttention(Protocol):
    """A kind of `PagedAttention`."""

    def __call__(self, cache: KVCache, pages: Pages, slots: Ints, first: Ints, count: Ints) -> PagedAttention:
        """See `PagedAttention`."""
        ...


def attention_for(model: Model) -> MakeAttention:
    """The C++ kernel for a model on a CPU where there is one, else PyTorch's operations."""
    code = paged_kernel(model.dtype, model.head_width, PAGE_TOKENS) if model.device.type == "cpu" else None
    return TorchAttention if code is None else partial(KernelAttention, code)


class KernelAttention(PagedAttention):
    """Attention by the C++ kernel: it loads a shared page once, for the queries of all its slots."""

    def __init__(self, code: ctypes.CDLL, cache: KVCache, pages: Pages, slots: Ints, first: Ints, count: Ints) -> None:
        """See `PagedAttention`; the kernel must have been compiled for such a cache."""
        super().__init__(cache, pages, slots, first, count)
        self._code, self._runs = code, page_runs(pages, slots, first, count)
        self._kernel = PagedKernel(code, {name: getattr(self._runs, name) for name in ARRAYS})
        # Number of further passes in which every slot stays on its last page.
        self._passes = int(self._runs.rest.min()) if bool((count == 1).all()) else 0

    def advance(self) -> bool:
        """See `PagedAttention`."""
        if not self._passes:
            return False
        self._passes -= 1
        self._runs.place[...] += 1
        self._runs.position[...] += 1
        return True

    def _for(self, slots: Ints, first: Ints, count: Ints) -> PagedAttention:
        return KernelAttention(self._code, self._cache, self._pages, slots, first, count)

    def _write(self, layer: int, key: Float[Tensor, "K U D"], value: Float[Tensor, "K U D"]) -> None:
        self._kernel.write(self._cache.keys[layer], self._cache.values[layer], key, value)

    def _attend(self, layer: int, query: Float[Tensor, "H U D"], scale: float, window: int | None) -> Tensor:
        return self._kernel.attend(self._cache.keys[layer], self._cache.values[layer], query, scale, window)


class TorchAttention(PagedAttention):
    """Attention by PyTorch's operations, on any device: pages are gathered, and scores masked.

    Slots with one new token share one call, padded to the longest; every other slot has its own call.
    """

    def __init__(self, cache: KVCache, pages: Pages, slots: Ints, first: Ints, count: Ints) -> None:
        """See `PagedAttention`."""
        super().__init__(cache, pages, slots, first, count)
        self._device = cache.keys[0].device
        self._calls: dict[int | None, list[_Call]] = {}
        # Of each slot: its pages, and the positions of its new tokens.
        spans: list[tuple[int, int, int]] = np.stack([slots, first, first + count], axis=1).tolist()
        self._held = [pages.held(slot, end) for slot, _, end in spans]
        self._positions: list[Ints] = [np.arange(begin, end) for _, begin, end in spans]
        places: list[Ints] = []
        for held, position in zip(self._held, self._positions, strict=True):
            page: Ints = held[np.searchsorted(pages.start[held], position, side="right") - 1]
            places.append(page * PAGE_TOKENS + position - pages.start[page])
        self._places = self._put(np.concatenate(places))

    def advance(self) -> bool:
        """See `PagedAttention`."""
        return False

    def _for(self, slots: Ints, first: Ints, count: Ints) -> PagedAttention:
        return TorchAttention(self._cache, self._pages, slots, first, count)

    def _write(self, layer: int, key: Float[Tensor, "K U D"], value: Float[Tensor, "K U D"]) -> None:
        self._cache.write(layer, self._places, key, value)

    def _attend(self, layer: int, query: Float[Tensor, "H U D"], scale: float, window: int | None) -> Tensor:
        if window not in self._calls:
            self._calls[window] = list(self._plan(window))
        mixed = torch.empty_like(query)
        for call in self._calls[window]:
            keys, values = (_gather(pool[layer], call.pages) for pool in (self._cache.keys, self._cache.values))
            some = query[:, call.tokens].transpose(0, 1)  # [N, H, n, D]
            mixed[:, call.tokens] = masked_attention(some, keys, values, call.mask, scale).transpose(0, 1)
        return mixed

    def _plan(self, window: int | None) -> "Iterator[_Call]":
        begin: Ints = np.cumsum(self._count) - self._count
        one: list[int] = np.flatnonzero(self._count == 1).tolist()
        more: list[int] = np.flatnonzero(self._count > 1).tolist()
        for slots in ([one] if one else []) + [[slot] for slot in more]:
            position: Ints = np.stack([self._positions[slot] for slot in slots])[:, None, :, None]
            pages = np.zeros((len(slots), max(len(self._held[slot]) for slot in slots)), dtype=np.int64)
            # [N, P]: the first position of each page, and the slot's last position there; none on padding.
            start, until = np.zeros_like(pages), np.full_like(pages, -1)
            for row, slot in enumerate(slots):
                held = self._held[slot]
                pages[row, : len(held)], start[row, : len(held)] = held, self._pages.start[held]
                until[row, : len(held)] = np.append(self._pages.start[held][1:] - 1, LAST_PAGE)
            key = (start[..., None] + np.arange(PAGE_TOKENS)).reshape(len(slots), 1, 1, -1)
            sees = (key <= position) & (key <= until.repeat(PAGE_TOKENS, axis=1)[:, None, None])
            if window is not None:
                sees &= key > position - window
            tokens: Ints = begin[np.asarray(slots), None] + np.arange(int(self._count[slots[0]]))
            mask = torch.as_tensor(sees, device=self._device)
            yield _Call(tokens=self._put(tokens), pages=self._put(pages), mask=mask)

    def _put(self, array: Ints) -> Int[Tensor, "..."]:
        return torch.as_tensor(array, device=self._device)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Call:
    """One call of PyTorch's attention, for N slots.

    Attributes:
        tokens: [N, n], the slots' tokens of the pass.
        pages: [N, P], the slots' pages; padding is page 0.
        mask: [N, 1, n, L], which of the L = P * `PAGE_TOKENS` keys each query sees.
    """

    tokens: Int[Tensor, "N n"]
    pages: Int[Tensor, "N P"]
    mask: Bool[Tensor, "N 1 n L"]


def _gather(pool: Float[Tensor, "K T D"], pages: Int[Tensor, "N P"]) -> Float[Tensor, "N K L D"]:
    found = pool.view(len(pool), -1, PAGE_TOKENS, pool.shape[2])[:, pages]  # [K, N, P, PAGE_TOKENS, D]
    return found.flatten(2, 3).transpose(0, 1)
