"""Passes of all slots in one packed sequence, over a paged KV cache in which prefixes are shared."""

from collections.abc import Collection

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from bough.engine.attention import PagedAttention, attention_for
from bough.engine.kv_cache import KVCache
from bough.engine.local import Local
from bough.engine.model import Attend, Model
from bough.engine.page_runs import ragged
from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.passes import Place
from bough.engine.slots import SHARED_TOKENS, Ints, Reuse, Slots


class PagedPasses:
    """See `Passes`. Keys and values of an idle slot stay, for jobs with the same prefix."""

    def __init__(self, config: Local, model: Model, slots: Slots, context_tokens: int) -> None:
        """Make an empty cache."""
        self._config, self._model, self._slots = config, model, slots
        self._make_attention = attention_for(model)
        self.full = False
        """See `Passes`."""
        limit = config.cache_tokens
        pages = config.slots * -(-context_tokens // PAGE_TOKENS) if limit is None else limit // PAGE_TOKENS
        self._pages = Pages(rows=config.slots, max_pages=pages)
        self._cache = KVCache(model)
        # Slots, page changes and attention of the last pass, if every slot decoded.
        self._decoded: tuple[Ints, int, PagedAttention] | None = None

    @property
    def cache_tokens(self) -> int:
        """See `Passes`."""
        return self._pages.max_pages * PAGE_TOKENS

    @property
    def cached_tokens(self) -> int:
        """See `Passes`."""
        return self._cache.tokens

    def place(self, prompt: Ints, end: int, running: Collection[int]) -> Place | None:
        """See `Passes`."""
        reuse = self._slots.find(prompt)
        if reuse.soon_tokens - reuse.tokens >= SHARED_TOKENS:
            return None
        slot = self._slots.choose(reuse)
        reused = self._reusable(reuse, slot, end, running)
        if reused is None:
            self.full = True
            return None
        read = int(self._slots.read[slot])
        if slot == reuse.slot:
            self._pages.cut(slot, reused, read)
        else:
            self._pages.cut(slot, 0, read)
            self._pages.share(slot, reuse.slot, reused)
        return Place(slot=slot, reused=reused)

    def _reusable(self, reuse: Reuse, slot: int, end: int, running: Collection[int]) -> int | None:
        """The number of tokens that a job of length `end` can share; None when it must wait for free pages."""
        pages = self._pages
        whole = slot == reuse.slot and self._slots.read[slot] == reuse.tokens
        missing = max(-(-(end - (int(pages.end[slot]) if whole else reuse.tokens)) // PAGE_TOKENS), 0)
        if pages.used + missing <= pages.max_pages:
            return reuse.tokens
        kept = [pages.held(other, int(pages.end[other])) for other in running]
        needed = np.unique(np.concatenate([*kept, pages.held(reuse.slot, reuse.tokens)]))
        if len(needed) + missing <= pages.max_pages:
            return reuse.tokens
        # An idle cache has pages for the job without sharing.
        return None if running else 0

    def reserve(self, slot: int, end: int) -> None:
        """See `Passes`."""
        self._evict(self._pages.missing(slot, end))
        self._pages.extend(slot, end)
        self._cache.reserve(len(self._pages.readers) * PAGE_TOKENS)

    def _evict(self, missing: int) -> None:
        """Evict idle slots, the oldest first, until `missing` pages are free."""
        most = self._pages.max_pages - missing
        for slot in self._slots.idle().tolist() if self._pages.used > most else ():
            self.discard(slot)
            if self._pages.used <= most:
                return

    def next_pieces(self, slots: Ints) -> tuple[Ints, Ints]:
        """See `Passes`."""
        count = self._slots.known[slots] - self._slots.read[slots]
        # Single tokens always run; prompts share the token limit in order of arrival.
        long = np.where(count > 1, count, 0)
        count = np.minimum(count, np.maximum(self._config.prefill_tokens - (np.cumsum(long) - long), count == 1))
        return slots[count > 0], count[count > 0]

    def hidden(self, slots: Ints, count: Ints, last: NDArray[np.bool_] | None) -> Float[Tensor, "_ W"]:
        """See `Passes`."""
        first = self._slots.read[slots]
        row, offset = ragged(count)
        position = first[row] + offset
        attention = self._attention(slots, first, count)
        rows = None if last is None else np.cumsum(count)[last] - 1
        wanted: Tensor | None = None
        attend: Attend | None = None
        if rows is not None and 0 < 2 * len(rows) <= len(row):
            wanted = self._put(rows)
            few, attend = attention.last(slots[last], position[rows], rows)
            self._decoded = (slots[last], self._pages.changes, few)
        hidden = self._model.hidden(
            self._put(self._slots.token[slots[row], position]), self._put(position), attention, wanted, attend
        )
        if rows is None or wanted is not None or len(rows) == len(hidden):
            return hidden
        return hidden[self._put(rows)]

    def _attention(self, slots: Ints, first: Ints, count: Ints) -> PagedAttention:
        """The attention of the next pass: the last pass's, advanced, where every slot adds one token."""
        decodes = bool((count == 1).all())
        if decodes and self._decoded is not None:
            before, changes, attention = self._decoded
            if changes == self._pages.changes and np.array_equal(before, slots) and attention.advance():
                return attention
        attention = self._make_attention(self._cache, self._pages, slots, first, count)
        self._decoded = (slots, self._pages.changes, attention) if decodes else None
        return attention

    def leave(self, slot: int) -> None:
        """See `Passes`."""
        read = int(self._slots.read[slot])
        self._pages.cut(slot, read, read)
        self.full = False

    def scrub(self, slot: int) -> None:
        """See `Passes`."""
        held = self._pages.held(slot, int(self._pages.end[slot]))
        own = held[self._pages.readers[held] == 1]
        self._cache.clear(self._put((own[:, None] * PAGE_TOKENS + np.arange(PAGE_TOKENS)).ravel()))

    def discard(self, slot: int) -> None:
        """See `Passes`."""
        self._pages.cut(slot, 0, int(self._slots.read[slot]))
        self._slots.clear(slot)

    def _put(self, array: Ints) -> Tensor:
        return torch.as_tensor(array, device=self._model.device)
