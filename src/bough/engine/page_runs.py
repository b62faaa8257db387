"""Groups the cache pages of one forward pass into runs with the same slots, once for all layers."""

from dataclasses import dataclass

import numpy as np

from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.slots import Ints

QUERY_TOKENS = 256
"""Most queries of a slot in one run: a longer chunk loads more pages that are masked for its first queries."""

LAST_PAGE = 1 << 62
"""`until` on a slot's last page, which has no end yet."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PageRuns:
    """S runs of E pages in all, attended by Q queries of the U tokens of a pass.

    A run is attended once, by the queries of all slots that share its pages. The arrays of all runs are concatenated:
    run s has the entries [begin[s], begin[s + 1]).

    Attributes:
        place: [U], the cache position of each new token.
        position: [U], its position in the sequence.
        rest: [U], the number of further tokens that fit on its page.
        page_begin: [S + 1].
        page: [E].
        start: [E], the sequence position of a page's first token.
        filled: [E], the number of its tokens before the next page begins; `PAGE_TOKENS` for a run's last page.
        query_begin: [S + 1].
        token: [Q], the query's index among the U tokens, ascending within a run.
        until: [Q], the last position of its slot in the run.
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


def page_runs(pages: Pages, slots: Ints, first: Ints, count: Ints) -> PageRuns:
    """Compute the runs of a pass.

    Args:
        pages: The page table, with pages for the new tokens.
        slots: [B], in the order of their concatenated tokens.
        first: [B], the position of each slot's first new token.
        count: [B], the number of new tokens of each slot, > 0.
    """
    piece, offset = ragged(-(-count // QUERY_TOKENS))
    skipped = offset * QUERY_TOKENS
    slots, first = slots[piece], first[piece] + skipped
    count = np.minimum(count[piece] - skipped, QUERY_TOKENS)
    row, offset = ragged(pages.count[slots])
    page = pages.table[slots[row], offset]
    start = pages.start[page]
    until = np.where(np.append(row[1:] != row[:-1], True), LAST_PAGE, np.append(start[1:], 0) - 1)
    # A slot may hold pages beyond its new tokens.
    reached = start < (first + count)[row]
    row, page, start, until = row[reached], page[reached], start[reached], until[reached]
    token_row, offset = ragged(count)
    position = first[token_row] + offset
    # Pages are sorted by row and start, so one search finds the page of every token.
    far = int((first + count).max()) + 1
    at = np.searchsorted(row * far + start, token_row * far + position, side="right") - 1
    begin = _run_begins(page, row)
    pages_of_run = np.diff(np.append(begin, len(page)))
    # Rows whose runs begin with the same page share the run.
    order = np.argsort(page[begin], kind="stable")
    begin, pages_of_run = begin[order], pages_of_run[order]
    one = np.flatnonzero(np.append(True, np.diff(page[begin]) != 0))
    member, offset = ragged(count[row[begin]])
    run, leaf = ragged(pages_of_run[one])
    entry = begin[one][run] + leaf
    last = leaf == pages_of_run[one][run] - 1
    return PageRuns(
        place=page[at] * PAGE_TOKENS + position - start[at],
        position=position,
        rest=np.minimum(start[at] + PAGE_TOKENS - 1, until[at]) - position,
        page_begin=_ends(pages_of_run[one]),
        page=page[entry],
        start=start[entry],
        filled=np.where(last, PAGE_TOKENS, until[entry] + 1 - start[entry]),
        query_begin=_ends(np.add.reduceat(count[row[begin]], one)),
        token=(np.cumsum(count) - count)[row[begin][member]] + offset,
        until=until[begin + pages_of_run - 1][member],
    )


def ragged(count: Ints) -> tuple[Ints, Ints]:
    """The row, and the index in its row, of each of sum(count) concatenated tokens."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)


def _run_begins(page: Ints, row: Ints) -> Ints:
    """Indices at which runs begin: the first page of a row, and pages with fewer readers than the page before."""
    # The readers of a page are a subset of its predecessor's, so an equal count means equal readers.
    readers = np.bincount(page)[page]
    return np.flatnonzero(np.append(True, (row[1:] != row[:-1]) | (readers[1:] != readers[:-1])))


def _ends(count: Ints) -> Ints:
    return np.append(0, np.cumsum(count))
