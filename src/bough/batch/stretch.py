"""A run of a forest's tokens, and the runs of keys that its queries see."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
        column: Which part of what its queries see; no query has two of one column, and each has part 0.
    """

    queries: tuple[int, int]
    keys: tuple[int, int]
    causal: bool
    rows: int
    column: int


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
        glances: Together, every pair of a query and a key that it sees, once; column by column.
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
        glances=_by_column(_glances(own, position[inside], len(past)), last - first),
    )


def _by_column(glances: Iterator[Glance], queries: int) -> tuple[Glance, ...]:
    """Each in the first column in which none of its queries has a part yet."""
    parts = np.zeros(queries, dtype=np.int64)
    found: list[Glance] = []
    for glance in glances:
        own = parts[slice(*glance.queries)]
        column = int(own.max())
        own[:] = column + 1
        found.append(replace(glance, column=column))
    return tuple(sorted(found, key=lambda glance: glance.column))


def _glances(end: Ints, position: Ints, past: int) -> Iterator[Glance]:
    """Runs of keys that the same run of queries sees: parts of the past, then each branch within the stretch.

    All are said to be of column 0.
    """
    if past:
        bounds = [0, *(1 + np.flatnonzero(np.diff(end[:past]))).tolist(), past]
        for begin, stop in pairwise(bounds):
            queries = (0, int(end[begin]))
            yield Glance(queries=queries, keys=(begin, stop), causal=False, rows=1, column=0)
    own, depth = end[past:], position[past:]
    # A branch ends where the next token is not its child, or is one of several.
    forks = 1 + np.flatnonzero((np.diff(own) != 0) | (np.diff(depth) != 1))
    begins = [0, *forks.tolist()] if len(own) else []
    branches = [
        # Where a text begins there is a first part, as elsewhere there is before the branch.
        (begin, stop, int(own[begin]), bool(depth[begin] == 0))
        for begin, stop in zip(begins, [*begins[1:], len(own)], strict=True)
    ]
    for (lonely, size, _), run in groupby(branches, lambda each: (each[2] == each[1], each[1] - each[0], each[3])):
        some = list(run)
        if lonely:
            begin, stop = some[0][0], some[-1][1]
            keys = (past + begin, past + stop)
            yield Glance(queries=(begin, stop), keys=keys, causal=True, rows=(stop - begin) // size, column=0)
            continue
        for begin, stop, reach, _ in some:
            yield Glance(queries=(begin, reach), keys=(past + begin, past + stop), causal=True, rows=1, column=0)
