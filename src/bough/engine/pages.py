"""Which pages of the cache hold what each slot has read: a fork shares its parent's pages, a page knows its readers."""

import numpy as np

from bough.engine.slots import Ints

PAGE_TOKENS = 64
"""Tokens of a page. What forks goes on in a page of its own, so a fork wastes at most so much memory."""

FIRST_PAGES = 32

NO_ONE = -1
"""Instead of a slot."""


class Pages:
    """P pages, dealt out to R slots.

    The pages of a slot, in order, are the path from the root of a tree to where it is. A page begins at some position
    of the text and holds up to `PAGE_TOKENS` tokens; a slot reads it up to where its own next page begins, so slots
    that part in the middle of a page share it up to there:

        page 7: 0 .. 31 | page 2: 32 .. 63 | page 9: 64 .. 95    slot 0
        page 7: 0 .. 31 | page 2: 32 .. 39 | page 4: 40 .. 71    slot 1 parted from it at 40

    Only one slot ever writes to a page, behind everything that others read there. What nobody else reads moves when
    there is no room behind it, to where there is twice as much, so that it stays side by side: then a query of a slot
    has two parts, what is shared and what is its own.

    Attributes:
        readers: [P], how many slots hold a page.
        start: [P], the position of its first token.
        kept: [P], the slot that is to go on there, if the page is free and no other has room elsewhere; or `NO_ONE`.
        table: [R, M], the pages of each slot, valid up to `count`.
        count: [R], how many pages it has.
        end: [R], the first position that has no place yet.
        changes: How often anybody got or lost pages, or may have.
    """

    def __init__(self, *, rows: int, most_pages: int) -> None:
        """Deal out up to `most_pages` pages to R = `rows` slots."""
        self.most_pages = most_pages
        self.readers: Ints = np.zeros(min(FIRST_PAGES, most_pages), dtype=np.int64)
        self.start: Ints = np.zeros(len(self.readers), dtype=np.int64)
        self.kept: Ints = np.full(len(self.readers), NO_ONE, dtype=np.int64)
        # Where the last run of each size was put.
        self._latest: dict[int, int] = {}
        self.table: Ints = np.zeros((rows, 4), dtype=np.int64)
        self.count: Ints = np.zeros(rows, dtype=np.int64)
        self.end: Ints = np.zeros(rows, dtype=np.int64)
        self.changes = 0

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
        self.changes += 1
        pages = self.held(source, tokens)
        self._widen(len(pages))
        self.table[slot, : len(pages)] = pages
        self.readers[pages] += 1
        self.count[slot], self.end[slot] = len(pages), tokens

    def cut(self, slot: int, tokens: int, read: int) -> None:
        """Keep the first `tokens` of the `read` tokens of a slot."""
        self.changes += 1
        keep = len(self.held(slot, tokens))
        dropped = self.table[slot, keep : self.count[slot]]
        if len(dropped):
            self.end[slot] = self.start[dropped[0]]
            self.readers[dropped] -= 1
            self.count[slot] = keep
            if keep == 0 or self.readers[self.table[slot, keep - 1]] > 1:
                self.kept[self.kept == slot] = NO_ONE
        # What was read beyond may serve another; then this slot must go on elsewhere.
        if tokens < read and (keep == 0 or self.readers[self.table[slot, keep - 1]] > 1):
            self.end[slot] = tokens

    def missing(self, slot: int, end: int) -> int:
        """How many pages a slot lacks for all positions before `end`."""
        return max(-(-(end - int(self.end[slot])) // PAGE_TOKENS), 0)

    def extend(self, slot: int, end: int) -> tuple[Ints, Ints]:
        """Make room for all positions before `end`. There must be enough pages.

        What the slot reads alone then lies side by side, if there is such a place.

        Returns:
            Pages of the slot that moved, and where to: their keys and values must follow. Nobody else reads them.
        """
        if not (missing := self.missing(slot, end)):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.changes += 1
        count = int(self.count[slot])
        mine = self.table[slot, :count]
        # On a path readers only ever get fewer, so these are the last.
        own = mine[self.readers[mine] == 1]
        begin = self._run(slot, own, len(own) + missing)
        if begin is None:
            new = np.append(own, self._scattered(missing, int(mine[-1]) + 1 if count else 0))
        else:
            new = begin + np.arange(len(own) + missing)
        start = np.append(self.start[own], self.end[slot] + PAGE_TOKENS * np.arange(missing))
        moved = own != new[: len(own)]
        self.readers[own] = 0
        self.readers[new], self.start[new] = 1, start
        self._widen(count + missing)
        self.table[slot, count - len(own) : count + missing] = new
        self.count[slot] += missing
        self.end[slot] += missing * PAGE_TOKENS
        return own[moved], new[: len(own)][moved]

    def _run(self, slot: int, own: Ints, pages: int) -> int | None:
        """Where so many pages of a slot, with those it has alone, can lie side by side; None if nowhere.

        Runs of many slots can be read in place when they are equally far apart, so each lies at a multiple of a power
        of two, and what is free up to the next is kept for it to go on, as long as there is other room.
        """
        size = 1 << (pages - 1).bit_length()
        begins = self._begins(slot, own, size)
        # A quarter of the pool may be kept; before more is, it grows.
        if not len(begins) and 4 * (self.used - len(own) + pages) > 3 * len(self.readers):
            self._grow((len(self.readers) // size + 1) * size)
            begins = self._begins(slot, own, size)
        if not len(begins):
            begins = self._begins(slot, own, size, kept=True)
        self.kept[self.kept == slot] = NO_ONE
        if not len(begins):
            return None
        if len(own) and own[0] in begins:
            begin = int(own[0])
        else:
            # Behind the last of its size: slots go on in turn, and what is read together lies together.
            begin = int(begins[np.searchsorted(begins, self._latest.get(size, 0)) % len(begins)])
            self._latest[size] = begin
        self.kept[begin : begin + size] = slot
        return begin

    def _begins(self, slot: int, own: Ints, size: int, *, kept: bool = False) -> Ints:
        """The multiples of `size` from which on so many pages are free or its own; with `kept`, for others too."""
        free = self.readers == 0
        free[own] = True
        if not kept:
            free &= (self.kept == NO_ONE) | (self.kept == slot)
        return size * np.flatnonzero(free[: len(free) // size * size].reshape(-1, size).all(axis=1))

    def _scattered(self, pages: int, after: int) -> Ints:
        """Free pages: those from `after` on or the first that lie side by side, else the first."""
        if len(self.readers) - self.used < pages:
            self._grow(len(self.readers) + pages)
        free = np.flatnonzero(self.readers == 0)
        assert len(free) >= pages, "who admits a request sees to it that there are enough pages"
        begins = np.flatnonzero(free[pages - 1 :] - free[: len(free) - pages + 1] == pages - 1)
        here = begins[free[begins] == after]
        first = int([*here, *begins, 0][0])
        return free[first : first + pages]

    def _grow(self, pages: int) -> None:
        size = len(self.readers)
        more = (0, min(max(2 * size, pages), self.most_pages) - size)
        self.readers, self.start = np.pad(self.readers, more), np.pad(self.start, more)
        self.kept = np.pad(self.kept, more, constant_values=NO_ONE)

    def _widen(self, pages: int) -> None:
        if (more := pages - self.table.shape[1]) > 0:
            self.table = np.pad(self.table, ((0, 0), (0, max(more, self.table.shape[1]))))
