"""A packed prefix tree divided among workers: each computes some of its tokens, and again the prefixes that these see.

    tokens, depth first   a a b b b c c c d d
    first worker          a a b b b
    second worker         a a       c c c d d

A loss is a sum over predictions, and each prediction belongs to one worker. So the gradients of the workers add up to
that of the whole tree, for any loss.
"""

from itertools import pairwise
from typing import Protocol

import numpy as np

from bough.batch.prefix_tree import NONE, PackedPrefixTree
from bough.tree import Ints

TOLERANCE = 1000
"""The largest share is at most one part in so many above the least possible one, relative to the mean."""


class Operations(Protocol):
    """Operations of an update, for numbers or arrays; see `Arithmetic.operations`."""

    def __call__(self, *, tokens: Ints, trained: Ints, pairs: Ints) -> Ints:
        """(tokens of the forward pass, trained tokens, pairs of a query and a key) -> operations."""
        ...


def shares(packed: PackedPrefixTree, count: int, operations: Operations) -> list[PackedPrefixTree]:
    """Divide a packed prefix tree so that the largest share has as few operations as possible.

    Shares are ranges of the tokens, cut where a branch begins, and the path to the first token of each. Repeated work
    counts as work, so a cut below a long prefix needs more balance to pay than one below a short prefix. The same tree
    is always divided in the same way.

    Args:
        packed: U tokens.
        count: Number of shares; there are empty ones when the tree has fewer branches.
        operations: The cost of a share.

    Raises:
        ValueError: when `count` is below 1.
    """
    if count < 1:
        raise ValueError(f"shares: got count={count}; need at least 1")
    if count == 1:
        return [packed]
    depth = packed.position.cpu().numpy()
    cuts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(depth) <= 0), [len(packed)]])
    bounds = divide(*_costs(packed, depth, cuts, operations), count)
    return [_share(packed, *cuts[[first, last]].tolist()) for first, last in pairwise(bounds)]


def _costs(packed: PackedPrefixTree, depth: Ints, cuts: Ints, operations: Operations) -> tuple[Ints, Ints]:
    """[C], the operations of all tokens before each cut, and of the path to it."""
    trained = np.bincount(packed.at, minlength=len(packed))
    tokens, predictions, pairs = (
        np.append(0, np.cumsum(each))[cuts] for each in (np.ones_like(depth), trained, depth + 1)
    )
    path = np.append(depth, 0)[cuts]
    return (
        operations(tokens=tokens, trained=predictions, pairs=pairs),
        operations(tokens=path, trained=np.zeros_like(path), pairs=path * (path + 1) // 2),
    )


def divide(before: Ints, path: Ints, count: int) -> list[int]:
    """Choose the cuts between shares so that the largest share has nearly as few operations as possible.

    Then the other shares become as equal as that allows.

    Args:
        before: [C], the operations of all tokens before each possible cut, ascending from 0.
        path: [C], those of the path to each cut, which a share that begins there computes again.
        count: Number of shares.

    Returns:
        `count + 1` indices of cuts, ascending: share i begins at cut i, and ends at cut i + 1.
    """
    # The operations before each cut that the share after it does not repeat.
    value: Ints = before - path
    whole = int(before[-1])
    low, high, best = whole // count, whole, [0, len(before) - 1]
    while high - low > whole // (TOLERANCE * count):
        most = (low + high) // 2
        found = _within(before, value, count, most)
        if found is None:
            low = most + 1
        else:
            best, high = found, most
    return _evened(before, value, best + [len(before) - 1] * (count + 1 - len(best)))


def _evened(before: Ints, value: Ints, bounds: list[int]) -> list[int]:
    """Move each cut to where the larger of its two shares is smallest, until none moves; the largest never grows."""
    moves = True
    while moves:
        moves = False
        for place in range(len(bounds) - 2, 0, -1):
            first, last = bounds[place - 1], bounds[place + 1]
            larger = np.maximum(before[first : last + 1] - value[first], before[last] - value[first : last + 1])
            best = first + int(larger.argmin())
            if larger[best - first] < larger[bounds[place] - first]:
                bounds[place], moves = best, True
    return bounds


def _within(before: Ints, value: Ints, count: int, most: int) -> list[int] | None:
    """At most `count` shares of at most `most` operations each; None when there are none.

    A share that begins at cut c reaches the cuts with before <= most + value[c]. So the best end of a share is the
    reachable cut with the largest value: the next share reaches furthest from there.
    """
    last, found = len(before) - 1, [0]
    for _ in range(count):
        here = found[-1]
        reach = int(np.searchsorted(before, most + int(value[here]), side="right")) - 1
        if reach >= last:
            return [*found, last]
        if reach <= here:
            return None
        found.append(here + 1 + int(value[here + 1 : reach + 1].argmax()))
    return None


def _share(packed: PackedPrefixTree, first: int, last: int) -> PackedPrefixTree:
    """The tokens from `first` to `last` with the predictions after them, and the path before."""
    if first == last:
        return packed.take(NONE)
    path = np.flatnonzero(packed.end[:first] > first)
    predictions = np.flatnonzero((packed.at >= first) & (packed.at < last))
    return packed.take(np.concatenate([path, np.arange(first, last)]), predictions)
