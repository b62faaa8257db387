"""Values of nodes in a tree: the mean return of the paths through them."""

import numpy as np

from bough.credit.keys import group_by
from bough.credit.normalize import ROUNDING, mean_at
from bough.tree import Bools, Floats, Ints, PathView, join, sum_at


def place_of(view: PathView) -> Ints:
    """[S] int64: group of the turns with the same node before them; the prompts of one task are one node."""
    prompt = view.place == view.offset[view.tree[view.path]]
    return group_by(np.where(prompt, -1 - view.task[view.path], view.place))


def stem_of(view: PathView) -> Ints:
    """[S] int64: the first turn, as an index in S, of each turn's segment without a fork.

    A segment is a run of turns on the same paths, from a fork to the next fork or the end. Trees in papers on
    text fork at the end of every segment. An agent's tree forks at some turns only, so here a segment is the run of
    turns between two forks: its tokens lead from the value at its start to the value at its end. Two paths
    that separate at their third turn, as turns (stems):

        0 (0)   1 (0)   2 (2)   3 (2)
        4 (4)   5 (4)   6 (6)
    """
    return np.maximum.accumulate(np.where(_begins(view), np.arange(len(view.path)), 0))


def value_before(view: PathView, value: Floats) -> Floats:
    """[S] float64: the mean of `value` [P] over the paths through the node before each turn."""
    return mean_at(value[view.path], place_of(view))


def value_after(view: PathView, value: Floats) -> Floats:
    """[S] float64: the mean of `value` [P] over the paths through the action of each turn."""
    return mean_at(value[view.path], view.node)


def rise(after: Floats, before: Floats) -> Floats:
    """[n] float64: after - before, exactly 0 where the two differ by rounding."""
    difference = after - before
    return np.where(np.abs(difference) <= ROUNDING * (np.abs(after) + np.abs(before)), 0.0, difference)


def trunk_of(view: PathView) -> Ints:
    """[P] int64: group of the paths of a tree with the same first chain.

    The explorer stores the chain in `Tree.chain`, because several chains may fork at the prompt itself. Without it, a
    group is the paths with the same first action.
    """
    first = np.full(view.paths, -1, dtype=np.int64)
    acted = view.turns > 0
    first[acted] = view.first[view.start[:-1][acted]]
    nodes, which = np.unique(first, return_inverse=True)
    chain = np.where(nodes < 0, -1, join(view.rewarded, "chain")[nodes]).astype(np.int64)
    name = np.where(chain < 0, nodes, chain)
    return group_by(view.tree, (chain >= 0)[which], name[which])


def mean_of_children(view: PathView, value: Floats) -> tuple[Floats, Ints]:
    """Computes the value of each segment, as a mean over branches, and the segment of each turn.

    The value of a segment that ends a path is the path's. That of any other segment is the mean over its child
    segments, each with the same weight.

    Args:
        view: The batch.
        value: [P], of each path.

    Returns:
        [H] float64, by segment; and [S] int64, the segment of each turn.
    """
    stem = stem_of(view)
    depth = np.cumsum(_begins(view), dtype=np.int64)
    depth -= depth[view.start[:-1]][view.path] if len(depth) else depth
    first, segment = np.unique(view.node[stem], return_inverse=True)
    count = len(first)
    height, above = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    height[segment] = depth
    inner = view.turn[stem] > 0
    above[segment[inner]] = segment[stem[inner] - 1]
    total = sum_at(segment[view.last], value[view.path[view.last]], count)
    parts = np.bincount(segment[view.last], minlength=count)
    for level in range(int(height.max(initial=0)), 0, -1):
        here = np.flatnonzero(height == level)
        np.add.at(total, above[here], total[here] / parts[here])
        np.add.at(parts, above[here], 1)
    return total / np.maximum(parts, 1), segment


def _begins(view: PathView) -> Bools:
    """[S] bool: whether a turn begins a segment."""
    # Paths fork and never merge, so equal counts mean the same paths.
    through = view.through[view.node]
    begins = view.turn == 0
    begins[1:] |= through[1:] != through[:-1]
    return begins
