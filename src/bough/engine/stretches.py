"""Which pages of the cache each token of a pass reads: computed once for all layers.

A stretch is a run of pages that the same slots of the pass read. It is attended once, by the queries of them all.
"""

from dataclasses import dataclass

import numpy as np

from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.slots import Ints

QUERY_TOKENS = 256
"""Queries of a slot that are taken together: more would look at many keys behind them, in vain."""

EVER = 1 << 62
"""The last position that a slot reads on its last page: it will read on there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretches:
    """S stretches, of E pages and with Q queries in all, which U tokens of a pass read.

    Arrays of all stretches lie end to end: those of stretch s are [begin[s], begin[s + 1]).

    Attributes:
        place: [U], where in the cache the new tokens belong.
        position: [U], where they stand in the text.
        rest: [U], how many more tokens of its slot belong on a token's page.
        page_begin: [S + 1].
        page: [E].
        start: [E], the position of a page's first token.
        filled: [E], how many of its tokens are read before the next page begins; all, of a stretch's last.
        query_begin: [S + 1].
        token: [Q], the token of the pass that a query is, ascending in a stretch.
        until: [Q], the last position that its slot reads here.
    """

    place: Ints
    position: Ints
    rest: Ints
    page_begin: Ints
    page: Ints
    start: Ints
    filled: Ints
    query_begin: Ints
    token: Ints
    until: Ints

    @property
    def room(self) -> int:
        """Over how many later passes, in each of which each slot reads one more token, pages stay as they are.

        Nobody may get or lose pages meanwhile.
        """
        return int(self.rest.min())


def stretches(pages: Pages, slots: Ints, first: Ints, count: Ints) -> Stretches:
    """Find them.

    Args:
        pages: With room for what is read.
        slots: [B], in the order in which their tokens lie end to end.
        first: [B], the position of each slot's first new token.
        count: [B], how many new tokens each slot reads, > 0.
    """
    # Each piece of a slot's tokens is a row of its own.
    piece, offset = ragged(-(-count // QUERY_TOKENS))
    skipped = offset * QUERY_TOKENS
    slots, first = slots[piece], first[piece] + skipped
    count = np.minimum(count[piece] - skipped, QUERY_TOKENS)
    row, offset = ragged(pages.count[slots])
    page = pages.table[slots[row], offset]
    start = pages.start[page]
    until = np.where(np.append(row[1:] != row[:-1], True), EVER, np.append(start[1:], 0) - 1)
    # A slot may hold pages that it has not come to yet.
    reached = start < (first + count)[row]
    row, page, start, until = row[reached], page[reached], start[reached], until[reached]
    token_row, offset = ragged(count)
    position = first[token_row] + offset
    # Pages are in order of row and start, so one search finds the page of every token.
    far = int((first + count).max()) + 1
    at = np.searchsorted(row * far + start, token_row * far + position, side="right") - 1
    begin = _begins(page, row, count)
    many = np.diff(np.append(begin, len(page)))
    # Runs with one first page are one stretch.
    order = np.argsort(page[begin], kind="stable")
    begin, many = begin[order], many[order]
    one = np.flatnonzero(np.append(True, np.diff(page[begin]) != 0))
    run, offset = ragged(count[row[begin]])
    stretch, leaf = ragged(many[one])
    entry = begin[one][stretch] + leaf
    last = leaf == many[one][stretch] - 1
    return Stretches(
        place=page[at] * PAGE_TOKENS + position - start[at],
        position=position,
        rest=np.minimum(start[at] + PAGE_TOKENS - 1, until[at]) - position,
        page_begin=_ends(many[one]),
        page=page[entry],
        start=start[entry],
        filled=np.where(last, PAGE_TOKENS, until[entry] + 1 - start[entry]),
        query_begin=_ends(np.add.reduceat(count[row[begin]], one)),
        token=(np.cumsum(count) - count)[row[begin][run]] + offset,
        until=until[begin + many - 1][run],
    )


def ragged(count: Ints) -> tuple[Ints, Ints]:
    """The row, and the place in its row, of each of sum(count) tokens laid end to end."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)


def _begins(page: Ints, row: Ints, count: Ints) -> Ints:
    """Where runs of pages begin on the paths of the rows: there, and where readers leave."""
    # On a path readers only ever get fewer, so equally many are the same.
    readers = np.bincount(page)[page]
    new = np.append(True, (row[1:] != row[:-1]) | (readers[1:] != readers[:-1]))
    alone = (readers == 1) & (count[row] == 1)
    new |= alone & np.append(True, np.diff(page) != 1)
    return np.flatnonzero(new)


def _ends(count: Ints) -> Ints:
    return np.append(0, np.cumsum(count))
