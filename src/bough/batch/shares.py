"""A packed prefix tree divided among workers: each computes some of its tokens, and again the prefixes that these see.

    tokens, depth first   a a b b b c c c d d
    first worker          a a b b b
    second worker         a a       c c c d d

A loss is a sum over predictions, and each prediction belongs to one worker. So the gradients of the workers add up to
that of the whole tree, for any loss.
"""

from heapq import heappop, heappush
from itertools import pairwise
from operator import itemgetter
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

    Shares are cut where a branch begins, and have the path to their first token. Repeated work counts as work, so a cut
    below a long prefix needs more balance to pay than one below a short prefix. The same tree is always divided in the
    same way.

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
    trained = np.bincount(packed.at, minlength=len(packed))
    parts, _ = share_out(depth, np.ones_like(depth), trained, count, operations)
    return [_share(packed, each) for each in parts]


def share_out(depth: Ints, tokens: Ints, trained: Ints, count: int, operations: Operations) -> tuple[list[Ints], int]:
    """Divide pieces of texts, depth first, among workers.

    Ranges of the pieces as they lie are tried, and ranges after the first branches were dealt out, the largest first:
    a few long branches side by side leave no even cut.

    Args:
        depth: [N] tokens before each piece in its text.
        tokens: [N] its own tokens.
        trained: [N] its trained tokens.
        count: Number of workers.
        operations: The cost of a share.

    Returns:
        The pieces of each worker, without the paths to them, and the operations of the worker with the most.
    """
    pairs = tokens * depth + tokens * (tokens + 1) // 2
    cost = operations(tokens=tokens, trained=trained, pairs=pairs)
    path_cost = operations(tokens=depth, trained=np.zeros_like(depth), pairs=depth * (depth + 1) // 2)
    found: list[tuple[int, list[Ints]]] = []
    for order in (np.arange(len(depth)), _dealt(depth, depth + tokens, cost, count)):
        begins, ends = depth[order], (depth + tokens)[order]
        cuts = np.concatenate([[0], 1 + np.flatnonzero(begins[1:] < ends[:-1]), [len(order)]])
        before, path = np.append(0, cost[order].cumsum())[cuts], np.append(path_cost[order], 0)[cuts]
        bounds = divide(before, path, count)
        begin, end = np.asarray(bounds[:-1]), np.asarray(bounds[1:])
        largest = int(np.where(end > begin, before[end] - before[begin] + path[begin], 0).max())
        found.append((largest, [order[first:last] for first, last in pairwise(cuts[bounds].tolist())]))
    (largest, ranges), (other, dealt) = found
    return (dealt, other) if other < largest else (ranges, largest)


def _dealt(depth: Ints, end: Ints, cost: Ints, count: int) -> Ints:
    """[N] an order of the pieces: what all texts share, and the branches after it of each of `count` workers.

    The largest branch that is left goes to the worker with the least, which is never far from even.
    """
    forks = 1 + np.flatnonzero(depth[1:] < end[:-1])
    if not len(forks):
        return np.arange(len(depth))
    starts = np.flatnonzero(depth == depth[forks].min())
    size = np.add.reduceat(cost, starts)
    workers: list[tuple[int, int, list[int]]] = [(0, number, []) for number in range(count)]
    for branch in np.argsort(-size, kind="stable").tolist():
        load, number, branches = heappop(workers)
        heappush(workers, (load + int(size[branch]), number, [*branches, branch]))
    ranges = np.split(np.arange(len(depth)), starts)
    in_turn = [branch for _, _, branches in sorted(workers, key=itemgetter(1)) for branch in sorted(branches)]
    return np.concatenate([ranges[0], *(ranges[1 + branch] for branch in in_turn)])


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


def _share(packed: PackedPrefixTree, part: Ints) -> PackedPrefixTree:
    """Tokens with the predictions after them, and the path to the first, which has all that the others see besides."""
    if not len(part):
        return packed.take(NONE)
    first = int(part[0])
    path = np.flatnonzero(packed.end[:first] > first)
    predictions = np.flatnonzero(np.isin(packed.at, part))
    return packed.take(np.union1d(path, part), predictions)
