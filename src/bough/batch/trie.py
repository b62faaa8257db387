"""A trie of token sequences, laid out depth first."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bough.tree import Ints

TOP = 0
"""The empty branch from which all texts begin."""


@dataclass(slots=True, kw_only=True)
class _Branch:
    """A run of tokens without a fork.

    Attributes:
        row: The first text that contains it.
        last: The depth of its end.
        first: The depth of its beginning; set when its parent is known.
        whole: The tokens of its subtree.
        follows: Its children.
    """

    row: int
    last: int
    first: int = 0
    whole: int = 0
    follows: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trie:
    """U distinct prefixes of R texts.

    Attributes:
        place: [S], the index of each token of all texts, end to end.
        end: [U], the index after the last descendant of each.
    """

    place: Ints
    end: Ints


def trie(rows: Sequence[Ints], *, merge: bool) -> Trie:
    """Build the trie, depth first, small subtrees before large ones.

    The layout depends on the forks and lengths of the texts, not on their tokens.

    Args:
        rows: The texts, each with at least one token.
        merge: False to keep each text apart.
    """
    # Sorted, texts that begin alike are neighbours, and big-endian bytes sort as the numbers do.
    order = sorted(range(len(rows)), key=lambda row: rows[row].astype(">u4").tobytes())
    branches = [_Branch(row=-1, last=0)]
    open_, ends = [TOP], [TOP] * len(rows)
    for before, row in zip([None, *order], order, strict=False):
        agree = _agree(rows[before], rows[row]) if merge and before is not None else 0
        _close(branches, open_, agree)
        if len(rows[row]) > branches[open_[-1]].last:
            open_.append(len(branches))
            branches.append(_Branch(row=row, last=len(rows[row])))
        ends[row] = open_[-1]
    _close(branches, open_, 0)
    return _lay(branches, ends)


def _agree(one: Ints, other: Ints) -> int:
    """The length of the common prefix of two texts."""
    width = min(len(one), len(other))
    differs = one[:width] != other[:width]
    return int(differs.argmax()) if differs.any() else width


def _close(branches: list[_Branch], open_: list[int], agree: int) -> None:
    """Close the open branches beyond the first `agree` tokens, and split the branch that crosses them."""
    while branches[open_[-1]].last > agree:
        closed = open_.pop()
        if branches[open_[-1]].last < agree:
            open_.append(len(branches))
            branches.append(_Branch(row=branches[closed].row, last=agree))
        own, parent = branches[closed], branches[open_[-1]]
        own.first = parent.last
        own.whole = own.last - own.first + sum(branches[each].whole for each in own.follows)
        own.row = min([own.row, *(branches[each].row for each in own.follows)])
        parent.follows.append(closed)


def _lay(branches: Sequence[_Branch], ends: Sequence[int]) -> Trie:
    """Lay the branches out depth first, small subtrees first."""
    nothing = np.zeros(0, dtype=np.int64)
    path: list[Ints] = [nothing] * len(branches)
    end = np.zeros(sum(branches[each].whole for each in branches[TOP].follows), dtype=np.int64)
    todo, at = [(TOP, nothing)], 0
    while todo:
        number, before = todo.pop()
        own = branches[number]
        size = own.last - own.first
        end[at : at + size] = at + own.whole
        path[number] = np.concatenate([before, np.arange(at, at + size)])
        at += size
        longest_first = sorted(own.follows, key=lambda each: (branches[each].whole, branches[each].row), reverse=True)
        todo += [(each, path[number]) for each in longest_first]
    return Trie(place=np.concatenate([nothing, *(path[each] for each in ends)]), end=end)
