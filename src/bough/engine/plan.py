"""Which stretches are attended together by operations of torch, computed once for all layers of a pass.

The parts of a query are merged by their log-sum-exp. Stretches that lie evenly spaced in the cache are read in place,
across small gaps too; where those are many or large, they are copied together. What a slot that decodes reads alone is
split where its pages are not side by side, which is rare: see `pages`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bough.engine.pages import PAGE_TOKENS
from bough.engine.slots import Ints
from bough.engine.stretches import Stretches, ragged

CALL_TOKENS = 2048
"""What one more call for keys that are read in place costs, measured in keys that are copied together."""

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
        blocks: What is attended.
        parts: [U, M], for each token its queries among those of all blocks laid end to end; -1 fills up.
    """

    blocks: tuple[Block, ...]
    parts: Ints

    def onward(self) -> int:
        """Over how many later passes nothing but masks and places changes, if each slot reads one more token in each.

        It ends where one has come to the last key of a block; pages must stay as they are.
        """
        room: list[int] = []
        for block in self.blocks:
            stretch, query = np.nonzero(block.own)
            if len(stretch):
                later: Ints = block.key_position[stretch] - block.last[stretch, query][:, None]
                now = np.flatnonzero(later == 0) % len(later[0])
                ahead = np.arange(len(later[0])) - now[:, None]
                # Behind a gap in the text or in memory the two never agree again.
                room.append(int(np.count_nonzero((later == ahead) & (ahead > 0), axis=1).min()))
        return min(room)


def plan(found: Stretches, pool_pages: int) -> Plan:
    """Plan one pass.

    Args:
        found: What is read.
        pool_pages: How many pages there are.
    """
    blocks = tuple(_blocks(found, pool_pages))
    return Plan(blocks=blocks, parts=_parts(blocks, len(found.place)))


def _blocks(found: Stretches, pool_pages: int) -> Iterator[Block]:
    begin, pages, queries = found.page_begin[:-1], np.diff(found.page_begin), np.diff(found.query_begin)
    page, token = found.page, found.token
    last = np.minimum(found.position[token], found.until)
    breaks = np.append(0, np.cumsum(np.diff(page) != 1))
    beside = breaks[begin] == breaks[begin + pages - 1]
    # Stretches whose queries have equally many binary digits, and whose pages fill runs of one size, share a block:
    # padding at most doubles either.
    kind = np.frexp(queries)[1] * 64 + np.frexp(pages - 1)[1]
    groups = np.lexsort((page[begin], kind))
    for group in np.split(groups, np.flatnonzero(np.diff(kind[groups])) + 1):
        step = np.arange(int(queries[group].max()))
        real = step < queries[group][:, None]
        query = found.query_begin[group][:, None] + np.minimum(step, queries[group][:, None] - 1)
        leaf = np.arange(int(pages[group].max()))
        most = pages[group][:, None] - 1
        entry = begin[group][:, None] + np.minimum(leaf, most)
        filled = found.filled[entry] * (leaf <= most)
        inside = np.arange(PAGE_TOKENS)
        key_position = np.where(inside < filled[..., None], found.start[entry][..., None] + inside, NOWHERE)
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
                position=found.position[token[query[at]]],
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
