"""A run of consecutive tokens of a packed prefix tree, and the runs of keys that its queries see."""

from dataclasses import dataclass

import numpy as np

from bough.tree import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk:
    """The tokens from `first` to before `last` of a packed prefix tree, n of them.

    The tokens before `first` that they see lie on one path, from a root to where the chunk begins: the tokens
    k < first with end[k] > first. They are the chunk's prefix.

    Attributes:
        first: Index of the first token in the packed tree.
        last: Index after the last token.
        past: [C], ascending: the tokens of the prefix.
        position: [C + n], the depth of each token of the prefix, then of the chunk.
        end: [C + n], where the descendants of each token end, counted from `first` and within the chunk.
        runs: [R, 4], runs of keys that are seen alike; C keys of the prefix and then the chunk's own. A run has the
            first query that sees it, the index after the last, and the same of its keys. A query among the keys sees
            the keys up to itself. Every key is in one run; runs are in the order of queries, and of keys.
    """

    first: int
    last: int
    past: Ints
    position: Ints
    end: Ints
    runs: Ints

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def pairs(self) -> int:
        """The number of pairs of a query and a key that it sees."""
        return int(self.position[len(self.past) :].sum()) + len(self)


def make_chunk(end: Ints, position: Ints, first: int, last: int) -> Chunk:
    """The tokens from `first` to before `last` of a packed tree with these `end` and `position`, [U] each."""
    past = np.flatnonzero(end[:first] > first) if first < len(end) and position[first] else end[:0]
    inside = np.concatenate([past, np.arange(first, last)])
    own = np.minimum(end[inside], last) - first
    return Chunk(
        first=first,
        last=last,
        past=past,
        position=position[inside],
        end=own,
        runs=_runs(own, position[inside], len(past)),
    )


def _runs(end: Ints, position: Ints, past: int) -> Ints:
    # A run ends where the next token is not the only child, and at the end of the prefix.
    forks = (np.diff(end) != 0) | (np.diff(position) != 1)
    forks[past - 1 : past] = True
    begin = np.append(0, 1 + np.flatnonzero(forks))[: len(end)]
    query = np.maximum(begin - past, 0)
    return np.stack([query, end[begin], begin, np.append(begin[1:], len(end))[: len(begin)]], axis=1)
