"""A run of a forest's tokens, and the runs of keys that its queries see."""

from dataclasses import dataclass

import numpy as np

from bough.tree import Ints


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
        runs: [R, 4], which keys, C of the past and then the stretch's own, are seen alike: the first of the queries
            that see them and the one after the last, and the same of the keys. A query among the keys sees those up to
            itself. Every key is in one run; they are in the order of queries, and of keys.
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
        runs=_runs(own, position[inside], len(past)),
    )


def _runs(end: Ints, position: Ints, past: int) -> Ints:
    # A run ends where the next token is not the child, or is one of several, and with the past.
    forks = (np.diff(end) != 0) | (np.diff(position) != 1)
    forks[past - 1 : past] = True
    begin = np.append(0, 1 + np.flatnonzero(forks))[: len(end)]
    query = np.maximum(begin - past, 0)
    return np.stack([query, end[begin], begin, np.append(begin[1:], len(end))[: len(begin)]], axis=1)
