"""The page table of the KV cache: forks share their parent's pages, with a reference count per page."""

import numpy as np

from bough.engine.slots import Ints

PAGE_TOKENS = 64
"""Tokens of a page. A fork continues on its own page, so it wastes less than one page of memory."""

FIRST_PAGES = 32


class Pages:
    """P pages, allocated to R slots.

    The pages of a slot, in order, are the path from the root of a tree to its last token. A page begins at any
    position of the sequence and holds up to `PAGE_TOKENS` tokens. A slot uses a page up to the start of its next page,
    so slots that diverge within a page share it up to the fork:

        page 7: 0 .. 31 | page 2: 32 .. 63 | page 9: 64 .. 95    slot 0
        page 7: 0 .. 31 | page 2: 32 .. 39 | page 4: 40 .. 71    slot 1, forked at 40

    Only one slot writes to a page, after the tokens that other slots use.

    Attributes:
        readers: [P], the number of slots that hold a page.
        start: [P], the position of its first token.
        table: [R, M], the pages of each slot, valid up to `count`.
        count: [R], the number of its pages.
        end: [R], the first position without a page.
        changes: The number of changes to `table` so far.
    """

    def __init__(self, *, rows: int, max_pages: int) -> None:
        """Allocate up to `max_pages` pages to R = `rows` slots."""
        self.max_pages = max_pages
        self.readers: Ints = np.zeros(min(FIRST_PAGES, max_pages), dtype=np.int64)
        self.start: Ints = np.zeros(len(self.readers), dtype=np.int64)
        self.table: Ints = np.zeros((rows, 4), dtype=np.int64)
        self.count: Ints = np.zeros(rows, dtype=np.int64)
        self.end: Ints = np.zeros(rows, dtype=np.int64)
        self.changes = 0

    @property
    def used(self) -> int:
        """The number of pages with readers."""
        return int(np.count_nonzero(self.readers))

    def held(self, slot: int, tokens: int) -> Ints:
        """The pages that hold the first `tokens` tokens of a slot."""
        mine = self.table[slot, : self.count[slot]]
        return mine[: np.searchsorted(self.start[mine], tokens)]

    def share(self, slot: int, source: int, tokens: int) -> None:
        """Share the pages of the first `tokens` tokens of `source` with a slot without pages."""
        self.changes += 1
        pages = self.held(source, tokens)
        self._widen(len(pages))
        self.table[slot, : len(pages)] = pages
        self.readers[pages] += 1
        self.count[slot], self.end[slot] = len(pages), tokens

    def cut(self, slot: int, tokens: int, read: int) -> None:
        """Truncate a slot from `read` to its first `tokens` tokens."""
        self.changes += 1
        keep = len(self.held(slot, tokens))
        dropped = self.table[slot, keep : self.count[slot]]
        if len(dropped):
            self.end[slot] = self.start[dropped[0]]
            self.readers[dropped] -= 1
            self.count[slot] = keep
        # If another slot uses the tokens after the cut, this slot continues on a new page.
        if tokens < read and (keep == 0 or self.readers[self.table[slot, keep - 1]] > 1):
            self.end[slot] = tokens

    def missing(self, slot: int, end: int) -> int:
        """The number of pages to allocate so that a slot covers all positions before `end`."""
        return max(-(-(end - int(self.end[slot])) // PAGE_TOKENS), 0)

    def extend(self, slot: int, end: int) -> None:
        """Allocate pages for all positions before `end`. There must be enough free pages."""
        if not (missing := self.missing(slot, end)):
            return
        self.changes += 1
        new = self._free(missing)
        self.readers[new] = 1
        self.start[new] = self.end[slot] + PAGE_TOKENS * np.arange(missing)
        count = int(self.count[slot])
        self._widen(count + missing)
        self.table[slot, count : count + missing] = new
        self.count[slot] += missing
        self.end[slot] += missing * PAGE_TOKENS

    def _free(self, pages: int) -> Ints:
        size = len(self.readers)
        if size - self.used < pages:
            more = (0, min(max(2 * size, size + pages), self.max_pages) - size)
            self.readers, self.start = np.pad(self.readers, more), np.pad(self.start, more)
        free = np.flatnonzero(self.readers == 0)[:pages]
        assert len(free) == pages, f"got {len(free)} free pages; need {pages}; the decoder must check"
        return free

    def _widen(self, pages: int) -> None:
        if (more := pages - self.table.shape[1]) > 0:
            self.table = np.pad(self.table, ((0, 0), (0, max(more, self.table.shape[1]))))
