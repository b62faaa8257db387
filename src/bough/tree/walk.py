"""Walks over a tree: leaves, paths, depths, contexts."""

from collections.abc import Iterator

import numpy as np

from bough.tree.marks import COUNTED, Kind
from bough.tree.tree import Bools, Floats, Ints, Tree


def leaves(tree: Tree) -> Ints:
    """[P] int64: the nodes without children, ascending. One leaf is one path, whatever its outcome."""
    inner = np.zeros(tree.nodes, dtype=np.bool_)
    inner[tree.parent[1:]] = True
    return np.flatnonzero(~inner)


def counted(tree: Tree) -> Ints:
    """[P] int64: the leaves whose paths count in statistics and in the loss (outcomes in `COUNTED`)."""
    ends = leaves(tree)
    return ends[np.isin(tree.outcome[ends], COUNTED)]


def path(tree: Tree, node: int) -> Ints:
    """The nodes from the root to `node`, both included, int64."""
    walk = [node]
    while tree.parent[walk[-1]] >= 0:
        walk.append(int(tree.parent[walk[-1]]))
    return np.asarray(walk[::-1], dtype=np.int64)


def levels(tree: Tree) -> Iterator[Ints]:
    """The nodes by depth, root first: the order for recursions over parents; reversed, over children."""
    depth = np.zeros(tree.nodes, dtype=np.int64)
    for node in range(1, tree.nodes):
        depth[node] = depth[tree.parent[node]] + 1
    for level in range(int(depth.max()) + 1):
        yield np.flatnonzero(depth == level)


def sum_to_root(tree: Tree, value: Floats) -> Floats:
    """[N] float64: the sum of `value` [N] over each node and all its ancestors."""
    total = np.array(value, dtype=np.float64)
    for level in levels(tree):
        below = level[tree.parent[level] >= 0]
        total[below] += total[tree.parent[below]]
    return total


def sum_of_subtree(tree: Tree, value: Floats) -> Floats:
    """[N] float64: the sum of `value` [N] over each node and all its descendants."""
    total = np.array(value, dtype=np.float64)
    for level in reversed(list(levels(tree))):
        below = level[tree.parent[level] >= 0]
        np.add.at(total, tree.parent[below], total[below])
    return total


def paths_through(tree: Tree) -> Ints:
    """[N] int64: how many counted paths run through each node."""
    ends = np.zeros(tree.nodes, dtype=np.float64)
    ends[counted(tree)] = 1.0
    return sum_of_subtree(tree, ends).astype(np.int64)


def turns(tree: Tree) -> Ints:
    """[N] int64: the number of actions from the root to each node, the node included."""
    return sum_to_root(tree, (tree.kind == Kind.ACTION).astype(np.float64)).astype(np.int64)


def text_start(tree: Tree) -> Ints:
    """[N] int64: the node at which the text that each node continues begins (the root, or the last `EDIT`)."""
    start = np.arange(tree.nodes, dtype=np.int64)
    for level in levels(tree):
        follows = level[(tree.kind[level] != Kind.EDIT) & (tree.parent[level] >= 0)]
        start[follows] = start[tree.parent[follows]]
    return start


def context(tree: Tree, node: int) -> Ints:
    """The tokens that the engine read before it wrote `node`, int32: from the start of the text to the parent."""
    start = int(text_start(tree)[node])
    walk = path(tree, node)
    read = walk[(walk >= start) & (walk != node)]
    return np.concatenate([tree.tokens_of(int(i)) for i in read] or [tree.token[:0]])


def token_node(tree: Tree) -> Ints:
    """[T] int64: the node each token belongs to."""
    return np.repeat(np.arange(tree.nodes, dtype=np.int64), np.diff(tree.span))


def trained(tree: Tree) -> Bools:
    """[T] bool: sampled tokens on at least one counted path, the ones a policy loss may touch."""
    return tree.sampled & (paths_through(tree)[token_node(tree)] > 0)
