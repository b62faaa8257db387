"""A run of a forest's tokens, and the runs of keys that its queries see."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from bough.tree import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """Queries that look at keys, all in one call: the run of queries, the run of keys.

    Where `causal`, both begin at the same token, and a query sees the keys up to its own: all of them, once it lies
    behind them.

    Attributes:
        queries: (first, last), among the stretch's tokens.
        keys: (first, last), among the past and then the stretch's tokens.
        causal: Whether the keys are the queries' own tokens.
        rows: So many equal runs, laid end to end, each of which looks at itself alone.
        opens: Whether these queries look at nothing before.
    """

    queries: tuple[int, int]
    keys: tuple[int, int]
    causal: bool
    rows: int
    opens: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretch:
    """The tokens from `first` to before `last` of a forest, n of them.

    What they see from before `first` lies on one path, from a root to where the stretch begins: the tokens k < first
    with end[k] > first.

    Attributes:
        first: In the forest.
        last: In the forest.
        past: [C], ascending: the tokens on that path.
        position: [C + n], how deep each token of the past, then of the stretch stands.
        end: [C + n], where the tokens end that follow each, counted from `first` and within the stretch.
        glances: Together, every pair of a query and a key that it sees, once.
    """

    first: int
    last: int
    past: Ints
    position: Ints
    end: Ints
    glances: Sequence[Glance]

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def pairs(self) -> int:
        """How many pairs there are of a query and a key that it sees."""
        return int(self.position[len(self.past) :].sum()) + len(self)


def stretch(end: Ints, position: Ints, first: int, last: int) -> Stretch:
    """The tokens from `first` to before `last` of a forest with these `end` and `position`, [U] each."""
    past = np.flatnonzero(end[:first] > first) if first < len(end) and position[first] else end[:0]
    inside = np.concatenate([past, np.arange(first, last)])
    own = np.minimum(end[inside], last) - first
    return Stretch(
        first=first,
        last=last,
        past=past,
        position=position[inside],
        end=own,
        glances=tuple(_glances(own, position[inside], len(past))),
    )


def _glances(end: Ints, position: Ints, past: int) -> Iterator[Glance]:
    """Runs of keys that the same run of queries sees: parts of the past, then each branch within the stretch."""
    if past:
        bounds = [0, *(1 + np.flatnonzero(np.diff(end[:past]))).tolist(), past]
        for begin, stop in pairwise(bounds):
            queries = (0, int(end[begin]))
            yield Glance(queries=queries, keys=(begin, stop), causal=False, rows=1, opens=begin == 0)
    own, depth = end[past:], position[past:]
    # A branch ends where the next token is not its child, or is one of several.
    forks = 1 + np.flatnonzero((np.diff(own) != 0) | (np.diff(depth) != 1))
    begins = [0, *forks.tolist()] if len(own) else []
    branches = [
        (begin, stop, int(own[begin]), bool(depth[begin] == 0))
        for begin, stop in zip(begins, [*begins[1:], len(own)], strict=True)
    ]
    for (lonely, size, opens), run in groupby(branches, lambda each: (each[2] == each[1], each[1] - each[0], each[3])):
        some = list(run)
        if lonely:
            begin, stop = some[0][0], some[-1][1]
            keys = (past + begin, past + stop)
            yield Glance(queries=(begin, stop), keys=keys, causal=True, rows=(stop - begin) // size, opens=opens)
            continue
        for begin, stop, reach, _ in some:
            yield Glance(queries=(begin, reach), keys=(past + begin, past + stop), causal=True, rows=1, opens=opens)
