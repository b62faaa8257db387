"""Values of nodes in a tree: the mean return of the paths through them."""

import numpy as np

from bough.credit.keys import group_by
from bough.credit.normalize import ROUNDING, mean_at
from bough.tree import TRUNK, Bools, Floats, Ints, PathView, sum_at


def place_of(view: PathView) -> Ints:
    """[S] int64: group of the turns that were acted from one place; the prompts of one task are one place."""
    prompt = view.place == view.offset[view.tree[view.path]]
    return group_by(np.where(prompt, -1 - view.task[view.path], view.place))


def stem_of(view: PathView) -> Ints:
    """[S] int64: the first turn, as a number in S, of the unbranched stretch that each turn is in.

    Turns that the same paths run through are one stretch, from a fork to the next fork or the end. Trees in papers on
    text fork at the end of every segment; where an agent's tree forks at some turns only, it is stretches that are such
    segments: a whole stretch was written to get from the value where it begins to the value where it ends. Two paths
    that part at their third turn, as turns (stems):

        0 (0)   1 (0)   2 (2)   3 (2)
        4 (4)   5 (4)   6 (6)
    """
    return np.maximum.accumulate(np.where(_begins(view), np.arange(len(view.path)), 0))


def value_before(view: PathView, value: Floats) -> Floats:
    """[S] float64: the mean of `value` [P] over the paths that act from the place of each turn."""
    return mean_at(value[view.path], place_of(view))


def value_after(view: PathView, value: Floats) -> Floats:
    """[S] float64: the mean of `value` [P] over the paths through the action of each turn."""
    return mean_at(value[view.path], view.node)


def rise(after: Floats, before: Floats) -> Floats:
    """[n] float64: after - before, exactly 0 where the two differ by rounding."""
    apart = after - before
    return np.where(np.abs(apart) <= ROUNDING * (np.abs(after) + np.abs(before)), 0.0, apart)


def trunk_of(view: PathView) -> Ints:
    """[P] int64: group of the paths of a tree that grew from one chain.

    It is what the explorer says under `TRUNK`, as one draw may have been the prompt itself; without that, the paths
    that share their first action.
    """
    first = np.full(view.paths, -1, dtype=np.int64)
    acted = view.turns > 0
    first[acted] = view.first[view.start[:-1][acted]]
    nodes, which = np.unique(first, return_inverse=True)
    said = [_mark(view, node) for node in nodes.tolist()]
    marked = np.asarray([mark is not None for mark in said], dtype=np.bool_)
    name = np.asarray([node if mark is None else mark for node, mark in zip(nodes.tolist(), said, strict=True)])
    return group_by(view.tree, marked[which], name.astype(np.int64)[which])


def mean_of_children(view: PathView, value: Floats) -> tuple[Floats, Ints]:
    """The value of each stretch, as a mean over branches, and the stretch of each turn.

    The value of a stretch that ends a path is the path's. That of any other stretch is the mean over its child
    stretches, each with the same weight.

    Args:
        view: The batch.
        value: [P], of each path.

    Returns:
        [H] float64, by stretch; and [S] int64, the stretch of each turn.
    """
    stem = stem_of(view)
    depth = np.cumsum(_begins(view), dtype=np.int64)
    depth -= depth[view.start[:-1]][view.path] if len(depth) else depth
    first, stretch = np.unique(view.node[stem], return_inverse=True)
    count = len(first)
    height, above = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    height[stretch] = depth
    inner = view.turn[stem] > 0
    above[stretch[inner]] = stretch[stem[inner] - 1]
    total = sum_at(stretch[view.last], value[view.path[view.last]], count)
    parts = np.bincount(stretch[view.last], minlength=count)
    for level in range(int(height.max(initial=0)), 0, -1):
        here = np.flatnonzero(height == level)
        np.add.at(total, above[here], total[here] / parts[here])
        np.add.at(parts, above[here], 1)
    return total / np.maximum(parts, 1), stretch


def _begins(view: PathView) -> Bools:
    """[S] bool: whether a turn begins a stretch."""
    # Paths only part on the way down, so equally many paths are the same paths.
    through = view.through[view.node]
    begins = view.turn == 0
    begins[1:] |= through[1:] != through[:-1]
    return begins


def _mark(view: PathView, node: int) -> int | None:
    if node < 0:
        return None
    tree = int(np.searchsorted(view.offset, node, side="right")) - 1
    mark = view.rewarded[tree].tree.info[node - int(view.offset[tree])].get(TRUNK)
    return mark if isinstance(mark, int) else None
