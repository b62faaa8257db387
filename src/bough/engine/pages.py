"""Which pages of the cache hold what each slot has read: a fork shares its parent's pages, a page knows its readers."""

import numpy as np

from bough.engine.slots import Ints

PAGE_TOKENS = 64
"""Tokens of a page. What forks goes on in a page of its own, so a fork wastes at most so much memory."""

FIRST_PAGES = 32


class Pages:
    """P pages, dealt out to R slots.

    The pages of a slot, in order, are the path from the root of a tree to where it is. A page begins at some position
    of the text and holds up to `PAGE_TOKENS` tokens; a slot reads it up to where its own next page begins, so slots
    that part in the middle of a page share it up to there:

        page 7: 0 .. 31 | page 2: 32 .. 63 | page 9: 64 .. 95    slot 0
        page 7: 0 .. 31 | page 2: 32 .. 39 | page 4: 40 .. 71    slot 1 parted from it at 40

    Only one slot ever writes to a page, behind everything that others read there.

    Attributes:
        readers: [P], how many slots hold a page.
        start: [P], the position of its first token.
        table: [R, M], the pages of each slot, valid up to `count`.
        count: [R], how many pages it has.
        end: [R], the first position that has no place yet.
    """

    def __init__(self, *, rows: int, most_pages: int) -> None:
        """Deal out up to `most_pages` pages to R = `rows` slots."""
        self.most_pages = most_pages
        self.readers: Ints = np.zeros(min(FIRST_PAGES, most_pages), dtype=np.int64)
        self.start: Ints = np.zeros(len(self.readers), dtype=np.int64)
        self.table: Ints = np.zeros((rows, 4), dtype=np.int64)
        self.count: Ints = np.zeros(rows, dtype=np.int64)
        self.end: Ints = np.zeros(rows, dtype=np.int64)

    @property
    def used(self) -> int:
        """How many pages someone holds."""
        return int(np.count_nonzero(self.readers))

    def held(self, slot: int, tokens: int) -> Ints:
        """The pages in which the first `tokens` tokens of a slot lie."""
        mine = self.table[slot, : self.count[slot]]
        return mine[: np.searchsorted(self.start[mine], tokens)]

    def share(self, slot: int, source: int, tokens: int) -> None:
        """Let a slot without pages read the first `tokens` tokens of another."""
        pages = self.held(source, tokens)
        self._widen(len(pages))
        self.table[slot, : len(pages)] = pages
        self.readers[pages] += 1
        self.count[slot], self.end[slot] = len(pages), tokens

    def cut(self, slot: int, tokens: int, read: int) -> None:
        """Keep the first `tokens` of the `read` tokens of a slot."""
        keep = len(self.held(slot, tokens))
        dropped = self.table[slot, keep : self.count[slot]]
        if len(dropped):
            self.end[slot] = self.start[dropped[0]]
            self.readers[dropped] -= 1
            self.count[slot] = keep
        # What was read beyond may serve another; then this slot must go on elsewhere.
        if tokens < read and (keep == 0 or self.readers[self.table[slot, keep - 1]] > 1):
            self.end[slot] = tokens

    def missing(self, slot: int, end: int) -> int:
        """How many pages a slot lacks for all positions before `end`."""
        return max(-(-(end - int(self.end[slot])) // PAGE_TOKENS), 0)

    def extend(self, slot: int, end: int) -> None:
        """Make room for all positions before `end`. There must be enough pages."""
        if not (missing := self.missing(slot, end)):
            return
        new, count = self._free(missing), int(self.count[slot])
        self._widen(count + missing)
        self.readers[new] = 1
        self.start[new] = self.end[slot] + PAGE_TOKENS * np.arange(missing)
        self.table[slot, count : count + missing] = new
        self.count[slot] += missing
        self.end[slot] += missing * PAGE_TOKENS

    def _free(self, pages: int) -> Ints:
        """The first that lie side by side, else the first: what lies together is read in place."""
        free = np.flatnonzero(self.readers == 0)
        if len(free) < pages:
            size = len(self.readers)
            more = min(max(2 * size, size + pages), self.most_pages) - size
            self.readers, self.start = np.pad(self.readers, (0, more)), np.pad(self.start, (0, more))
            free = np.append(free, np.arange(size, size + more))
            assert len(free) >= pages, "who admits a request sees to it that there are enough pages"
        begins = np.flatnonzero(free[pages - 1 :] - free[: len(free) - pages + 1] == pages - 1)
        first = int(begins[0]) if len(begins) else 0
        return free[first : first + pages]

    def _widen(self, pages: int) -> None:
        if (more := pages - self.table.shape[1]) > 0:
            self.table = np.pad(self.table, ((0, 0), (0, max(more, self.table.shape[1]))))
