"""Who attends to what in one pass: stretches of pages and the slots that read them, computed once for all layers.

A stretch is a run of pages that the same slots of the pass read. It is attended once, by the queries of them all; the
parts of a query are merged by their log-sum-exp. Stretches that lie evenly spaced in the cache are read in place,
across small gaps too; where those are many or large, they are copied together. What a slot that decodes reads alone is
split where its pages are not side by side, which is rare: see `pages`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.slots import Ints

CALL_TOKENS = 2048
"""What one more call for keys that are read in place costs, measured in keys that are copied together."""

QUERY_TOKENS = 256
"""Queries of a slot that are taken together: more would look at many keys behind them, in vain."""

CHUNK_TOKENS = 16
"""A part of a page: keys beyond the last that is seen are left out, up to a multiple of this."""

NOWHERE = np.iinfo(np.int64).max
"""The position of a key that no one may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Even:
    """Stretches whose pages are side by side, equally far from one another.

    Attributes:
        first: The first page of the first.
        step: Pages from one to the next.
    """

    first: int
    step: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scattered:
    """Stretches whose pages lie anywhere.

    Attributes:
        pages: [N, M]; the last is repeated where there are fewer.
    """

    pages: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """N stretches that are attended together, each padded to n queries and L keys.

    Attributes:
        place: Where the keys are.
        token: [N, n], the token of the pass that each query is; padding repeats a stretch's last.
        key_position: [N, L], where each key stands in the text; `NOWHERE` if nowhere.
        last: [N, n], the last position that a query sees here.
        position: [N, n], where the query itself stands.
        real: [N, n], False for padding.
    """

    place: "Even | Scattered"
    token: Ints
    key_position: Ints
    last: Ints
    position: Ints
    real: NDArray[np.bool_]

    @property
    def own(self) -> NDArray[np.bool_]:
        """[N, n], the queries that see themselves here, and so will see here what their slots read next."""
        return self.last == self.position


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

    def onward(self) -> int:
        """Over how many later passes nothing but masks and places changes, if each slot reads one more token in each.

        Nobody may get or lose pages meanwhile. It ends where one begins a page, or has come to the last key of a block.
        """
        room = [int(PAGE_TOKENS - 1 - (self.places % PAGE_TOKENS).max())]
        for block in self.blocks:
            stretch, query = np.nonzero(block.own)
            if len(stretch):
                later: Ints = block.key_position[stretch] - block.last[stretch, query][:, None]
                now = np.flatnonzero(later == 0) % len(later[0])
                ahead = np.arange(len(later[0])) - now[:, None]
                # Behind a gap in the text or in memory the two never agree again.
                room.append(int(np.count_nonzero((later == ahead) & (ahead > 0), axis=1).min()))
        return min(room)


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
    # Each piece of a slot's tokens is a row of its own.
    piece, offset = ragged(-(-count // QUERY_TOKENS))
    skipped = offset * QUERY_TOKENS
    slots, first = slots[piece], first[piece] + skipped
    count = np.minimum(count[piece] - skipped, QUERY_TOKENS)
    entry_row, offset = ragged(pages.count[slots])
    page = pages.table[slots[entry_row], offset]
    # A slot may hold pages that it has not come to yet.
    reached = pages.start[page] < (first + count)[entry_row]
    entry_row, page = entry_row[reached], page[reached]
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
    runs = _runs(page, entry_row, until, count)
    blocks = tuple(_blocks(runs, page, start, until, position, count, len(pages.readers)))
    return Plan(places=places, blocks=blocks, parts=_parts(blocks, len(position)))


def ragged(count: Ints) -> tuple[Ints, Ints]:
    """The row, and the place in its row, of each of sum(count) tokens laid end to end."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)


def _runs(page: Ints, row: Ints, until: Ints, count: Ints) -> _Runs:
    """Split the paths where readers leave."""
    # On a path readers only ever get fewer, so equally many are the same.
    readers = np.bincount(page)[page]
    new = np.append(True, (row[1:] != row[:-1]) | (readers[1:] != readers[:-1]))
    alone = (readers == 1) & (count[row] == 1)
    new |= alone & np.append(True, np.diff(page) != 1)
    begin = np.flatnonzero(new)
    pages = np.diff(np.append(begin, len(page)))
    return _Runs(key=page[begin], row=row[begin], begin=begin, pages=pages, until=until[begin + pages - 1])


def _blocks(
    runs: _Runs, page: Ints, start: Ints, until: Ints, position: Ints, count: Ints, pool_pages: int
) -> Iterator[Block]:
    order = np.argsort(runs.key, kind="stable")
    key, row = runs.key[order], runs.row[order]
    heads = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    queries = np.add.reduceat(count[row], heads)
    pages, begin = runs.pages[order][heads], runs.begin[order][heads]
    # The queries of all stretches, end to end.
    run, offset = ragged(count[row])
    token = (np.cumsum(count) - count)[row[run]] + offset
    last = np.minimum(position[token], runs.until[order][run] - 1)
    query_begin = np.cumsum(queries) - queries
    breaks = np.append(0, np.cumsum(np.diff(page) != 1))
    beside = breaks[begin] == breaks[begin + pages - 1]
    # Stretches whose queries have equally many binary digits, and whose pages fill runs of one size, share a block:
    # padding at most doubles either.
    kind = np.frexp(queries)[1] * 64 + np.frexp(pages - 1)[1]
    groups = np.lexsort((page[begin], kind))
    for group in np.split(groups, np.flatnonzero(np.diff(kind[groups])) + 1):
        step = np.arange(int(queries[group].max()))
        real = step < queries[group][:, None]
        query = query_begin[group][:, None] + np.minimum(step, queries[group][:, None] - 1)
        leaf = np.arange(int(pages[group].max()))
        most = pages[group][:, None] - 1
        entry = begin[group][:, None] + np.minimum(leaf, most)
        # The last page is seen as far as each query may; the others up to where the next begins.
        filled = np.where(leaf == most, PAGE_TOKENS, until[entry] - start[entry]) * (leaf <= most)
        inside = np.arange(PAGE_TOKENS)
        key_position = np.where(inside < filled[..., None], start[entry][..., None] + inside, NOWHERE)
        key_position = key_position.reshape(len(group), -1)
        seen = np.flatnonzero((key_position <= last[query].max(axis=1)[:, None]).any(axis=0))[-1] + 1
        key_position = key_position[:, : -(-seen // CHUNK_TOKENS) * CHUNK_TOKENS]
        first = page[entry[:, 0]]
        in_place = beside[group].all() and first[-1] + len(leaf) <= pool_pages
        evens = _evens(first, len(leaf) * PAGE_TOKENS, len(step)) if in_place else None
        for at, place in evens or [(np.arange(len(group)), Scattered(pages=page[entry]))]:
            # What only fills a gap is read for nothing, by some query that asks for no answer.
            again = np.append(False, np.diff(at) == 0)
            yield Block(
                place=place,
                token=token[query[at]],
                key_position=key_position[at],
                last=last[query[at]],
                position=position[token[query[at]]],
                real=real[at] & ~again[:, None],
            )


def _evens(first: Ints, tokens: int, queries: int) -> list[tuple[Ints, Even]] | None:
    """Parts of N stretches that are evenly spaced; None when all are sooner copied together.

    Args:
        first: [N], the first page of each, ascending.
        tokens: Of each.
        queries: Of each.

    Returns:
        Of each part its stretches, some more than once to fill the gap behind them, and where they are.
    """
    apart = np.diff(first)
    values, often = np.unique(apart, return_counts=True)
    step = int(values[often.argmax()]) if len(apart) else 1
    # What is read in a gap comes from memory and is computed with, which costs more than copying.
    gaps = 3 * (apart // step - 1) * tokens * queries
    split = (apart % step != 0) | (gaps > CALL_TOKENS)
    if np.where(split, CALL_TOKENS, gaps).sum() > len(first) * tokens:
        return None
    parts: list[tuple[Ints, Even]] = []
    begins = np.flatnonzero(np.append(True, split))
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(first)], strict=True):
        size = int(first[end - 1] - first[begin]) // step + 1
        grid = int(first[begin]) + step * np.arange(size)
        at: Ints = np.searchsorted(first, grid, side="right") - 1
        parts.append((at, Even(first=int(first[begin]), step=step)))
    return parts


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
