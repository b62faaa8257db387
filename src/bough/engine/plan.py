"""Who attends to what in one pass: stretches of pages and the slots that read them, computed once for all layers.

A stretch is a run of pages that the same slots of the pass read. Where several read a long one, it is attended once, by
the queries of them all; what follows is each slot's own. A query's parts are merged by their log-sum-exp.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.slots import Ints

SHARED_PAGES = 2
"""A shorter stretch that several read is attended by each alone: a further part to merge costs more."""

NOWHERE = np.iinfo(np.int64).max
"""The position of a key that no one may see."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """N stretches that are attended together, each padded to n queries and L pages.

    Attributes:
        pages: [N, L].
        token: [N, n], the token of the pass that each query is; padding repeats a stretch's last.
        key_position: [N, L page], where each key stands in the text; `NOWHERE` if nowhere.
        last: [N, n], the last position that a query sees here.
        position: [N, n], where the query itself stands.
        real: [N, n], False for padding.
    """

    pages: Ints
    token: Ints
    key_position: Ints
    last: Ints
    position: Ints
    real: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What a pass of U tokens does.

    Attributes:
        places: [U], where in the cache the new tokens belong.
        blocks: What is attended.
        parts: [U, M], for each token its queries among those of all blocks laid end to end; -1 fills up.
    """

    places: Ints
    blocks: tuple[Block, ...]
    parts: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Runs:
    """Q runs of pages along the paths of slots; runs of one key are one stretch.

    Attributes:
        key: [Q].
        row: [Q], whose path.
        begin: [Q], its first entry among the pages of all rows.
        pages: [Q], how many.
        until: [Q], the position up to which the row reads the run's last page.
    """

    key: Ints
    row: Ints
    begin: Ints
    pages: Ints
    until: Ints


def plan(pages: Pages, slots: Ints, first: Ints, count: Ints) -> Plan:
    """Plan one pass.

    Args:
        pages: With room for what is read.
        slots: [B], in the order in which their tokens lie end to end.
        first: [B], the position of each slot's first new token.
        count: [B], how many new tokens each slot reads, > 0.
    """
    entry_row, offset = ragged(pages.count[slots])
    page = pages.table[slots[entry_row], offset]
    start = pages.start[page]
    until = np.append(start[1:], 0)
    ends = np.flatnonzero(np.append(np.diff(entry_row), 1))
    until[ends] = first + count
    token_row, offset = ragged(count)
    position = first[token_row] + offset
    # Pages are in order of row and start, so one search finds the page of every token.
    far = int(until.max()) + 1
    at = np.searchsorted(entry_row * far + start, token_row * far + position, side="right") - 1
    places = page[at] * PAGE_TOKENS + position - start[at]
    runs = _runs(page, entry_row, until)
    blocks = tuple(_blocks(runs, page, start, until, position, count))
    return Plan(places=places, blocks=blocks, parts=_parts(blocks, len(position)))


def ragged(count: Ints) -> tuple[Ints, Ints]:
    """The row, and the place in its row, of each of sum(count) tokens laid end to end."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)


def _runs(page: Ints, row: Ints, until: Ints) -> _Runs:
    """Split the paths where readers leave, and put together again what each slot had better read alone."""
    entries = np.arange(len(page))
    # On a path readers only ever get fewer, so equally many are the same.
    readers = np.bincount(page)[page]
    new_row = np.append(True, row[1:] != row[:-1])
    begins = np.flatnonzero(new_row | np.append(True, readers[1:] != readers[:-1]))
    pages = np.diff(np.append(begins, len(page)))
    shared = (readers[begins] > 1) & (pages >= SHARED_PAGES)
    own = np.flatnonzero(new_row)
    np.maximum.at(own, row[begins[shared]], begins[shared] + pages[shared])
    begins = np.flatnonzero(np.isin(entries, begins) & (entries < own[row]) | (entries == own[row]))
    alone = begins >= own[row[begins]]
    pages = np.diff(np.append(begins, len(page)))
    return _Runs(
        key=np.where(alone, len(page) + page.max() + begins, page[begins]),
        row=row[begins],
        begin=begins,
        pages=pages,
        until=until[begins + pages - 1],
    )


def _blocks(runs: _Runs, page: Ints, start: Ints, until: Ints, position: Ints, count: Ints) -> Iterator[Block]:
    order = np.argsort(runs.key, kind="stable")
    key, row = runs.key[order], runs.row[order]
    heads = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    queries = np.add.reduceat(count[row], heads)
    pages, begin = runs.pages[order][heads], runs.begin[order][heads]
    # Stretches whose queries and keys have equally many binary digits share a block: padding at most doubles either.
    digits = np.frexp(queries)[1] * 64 + np.frexp(pages)[1]
    groups = np.lexsort((page[begin], digits))
    # The queries of all stretches, end to end.
    run, offset = ragged(count[row])
    token = (np.cumsum(count) - count)[row[run]] + offset
    last = np.minimum(position[token], runs.until[order][run] - 1)
    query_begin = np.cumsum(queries) - queries
    for group in np.split(groups, np.flatnonzero(np.diff(digits[groups])) + 1):
        width, length = int(queries[group].max()), int(pages[group].max())
        step = np.arange(width)
        query = query_begin[group][:, None] + np.minimum(step, queries[group][:, None] - 1)
        leaf = np.arange(length)
        entry = begin[group][:, None] + np.minimum(leaf, pages[group][:, None] - 1)
        # The last page is seen as far as each query may; the others up to where the next begins.
        filled = np.where(leaf == pages[group][:, None] - 1, PAGE_TOKENS, until[entry] - start[entry])
        filled[leaf >= pages[group][:, None]] = 0
        inside = np.arange(PAGE_TOKENS)
        key_position = np.where(inside < filled[..., None], start[entry][..., None] + inside, NOWHERE)
        yield Block(
            pages=page[entry],
            token=token[query],
            key_position=key_position.reshape(len(group), -1),
            last=last[query],
            position=position[token[query]],
            real=step < queries[group][:, None],
        )


def _parts(blocks: tuple[Block, ...], tokens: int) -> Ints:
    token = np.concatenate([block.token.ravel() for block in blocks])
    part = np.flatnonzero(np.concatenate([block.real.ravel() for block in blocks]))
    token = token[part]
    order = np.argsort(token, kind="stable")
    per_token = np.bincount(token, minlength=tokens)
    row, column = ragged(per_token)
    parts = np.full((tokens, int(per_token.max())), -1, dtype=np.int64)
    parts[row, column] = part[order]
    return parts
