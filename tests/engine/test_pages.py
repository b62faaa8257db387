import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.engine.pages import FIRST_PAGES, PAGE_TOKENS, Pages


def _table(pages: Pages, slot: int) -> list[int]:
    return pages.table[slot, : pages.count[slot]].tolist()


def _pages(rows: int = 4, max_pages: int = 100) -> Pages:
    return Pages(rows=rows, max_pages=max_pages)


def test_a_fork_holds_its_parents_pages_and_goes_on_in_its_own() -> None:
    pages = _pages()
    pages.extend(0, 2 * PAGE_TOKENS)
    pages.share(1, 0, PAGE_TOKENS + 5)
    assert _table(pages, 1) == [0, 1]
    assert pages.end[1] == PAGE_TOKENS + 5
    pages.extend(1, PAGE_TOKENS + 6)
    assert _table(pages, 1) == [0, 1, 2]
    assert pages.start[2] == PAGE_TOKENS + 5
    assert pages.readers[:3].tolist() == [2, 2, 1]
    assert pages.used == 3


def test_nothing_is_shared_of_what_lies_behind_the_fork() -> None:
    pages = _pages()
    pages.extend(0, 2 * PAGE_TOKENS)
    pages.share(1, 0, PAGE_TOKENS)
    pages.share(2, 0, 0)
    assert [_table(pages, slot) for slot in (1, 2)] == [[0], []]


def test_pages_go_back_with_their_last_reader() -> None:
    pages = _pages()
    pages.extend(0, 2 * PAGE_TOKENS)
    pages.share(1, 0, PAGE_TOKENS + 5)
    pages.cut(0, 0, 100)
    assert pages.used == 2
    pages.cut(1, 0, 100)
    assert pages.used == 0
    assert pages.end[:2].tolist() == [0, 0]


@pytest.mark.parametrize(("shared", "end"), [(0, 2 * PAGE_TOKENS), (PAGE_TOKENS + 9, PAGE_TOKENS + 3)])
def test_going_back_within_a_page_leaves_it_to_others(shared: int, end: int) -> None:
    pages = _pages()
    pages.extend(0, 2 * PAGE_TOKENS)
    pages.share(1, 0, shared)
    pages.cut(0, PAGE_TOKENS + 3, PAGE_TOKENS + 20)
    assert pages.end[0] == end


def test_going_on_after_a_fork_stays_in_the_page() -> None:
    pages = _pages()
    pages.extend(0, PAGE_TOKENS)
    pages.share(1, 0, 9)
    pages.cut(0, 9, 9)
    assert pages.end.tolist()[:2] == [PAGE_TOKENS, 9]


def test_pages_and_tables_grow() -> None:
    pages = _pages(max_pages=10 * FIRST_PAGES)
    pages.extend(0, 5 * FIRST_PAGES * PAGE_TOKENS)
    assert _table(pages, 0) == list(range(5 * FIRST_PAGES))
    pages.extend(1, 5 * FIRST_PAGES * PAGE_TOKENS)
    assert len(pages.readers) == 10 * FIRST_PAGES
    assert np.all(pages.readers == 1)
    with pytest.raises(AssertionError, match="got 0 free pages; need 1"):
        pages.extend(2, 1)


class Memory:
    """Slots that write numbered tokens into pages, beside the text of each, kept apart."""

    def __init__(self, rows: int, max_pages: int) -> None:
        self.pages = Pages(rows=rows, max_pages=max_pages)
        self.cells = np.zeros((max_pages, PAGE_TOKENS), dtype=np.int64)
        self.texts: list[list[int]] = [[] for _ in range(rows)]
        self.written = 0

    def write(self, slot: int, tokens: int) -> None:
        pages, text = self.pages, self.texts[slot]
        end = len(text) + tokens
        used = pages.used + pages.missing(slot, end)
        if used > pages.max_pages:
            return
        elsewhere = [_table(pages, other) for other in range(len(self.texts)) if other != slot]
        pages.extend(slot, end)
        assert pages.used == used
        assert elsewhere == [_table(pages, other) for other in range(len(self.texts)) if other != slot]
        for position in range(len(text), end):
            self.written += 1
            text.append(self.written)
            self.cells[self.place(slot, position)] = self.written

    def place(self, slot: int, position: int) -> tuple[int, int]:
        mine = np.array(_table(self.pages, slot))
        page = int(mine[np.searchsorted(self.pages.start[mine], position, side="right") - 1])
        return page, position - int(self.pages.start[page])

    def fork(self, source: int, slot: int, tokens: int) -> None:
        if slot == source:
            self.pages.cut(slot, tokens, len(self.texts[slot]))
        else:
            self.pages.cut(slot, 0, len(self.texts[slot]))
            self.pages.share(slot, source, tokens)
        self.texts[slot] = self.texts[source][:tokens]

    def check(self) -> None:
        pages = self.pages
        held = [page for slot in range(len(self.texts)) for page in _table(pages, slot)]
        assert np.bincount(held, minlength=len(pages.readers)).tolist() == pages.readers.tolist()
        assert len(pages.readers) == len(pages.start) <= pages.max_pages
        for slot, text in enumerate(self.texts):
            assert [self.cells[self.place(slot, position)] for position in range(len(text))] == text
            assert len(text) <= pages.end[slot]
            starts = pages.start[_table(pages, slot)]
            assert np.all(np.diff(starts) > 0)
            assert np.all(np.diff(pages.readers[_table(pages, slot)]) <= 0)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([3, 8, 20, 48, 200]))
def test_every_slot_reads_what_it_wrote(seed: int, max_pages: int) -> None:
    draw, memory = random.Random(seed), Memory(rows=5, max_pages=max_pages)
    for _ in range(30):
        slot, source = draw.randrange(5), draw.randrange(5)
        if draw.random() < 0.3:
            memory.fork(source, slot, draw.randint(0, len(memory.texts[source])))
        else:
            memory.write(slot, draw.choice([1, 48, 48, 150]))
        memory.check()
