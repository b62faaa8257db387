"""Traversals of a tree: leaves, paths, depths, contexts."""

from collections.abc import Iterator

import numpy as np

from bough.tree.marks import COUNTED, Kind, Outcome
from bough.tree.tree import Bools, Floats, Ints, Tree


def leaves(tree: Tree) -> Ints:
    """[P] int64: the nodes without children, ascending. One leaf is one path, whatever its outcome."""
    inner = np.zeros(tree.nodes, dtype=np.bool_)
    inner[tree.parent[1:]] = True
    return np.flatnonzero(~inner)


def counted(tree: Tree) -> Ints:
    """[P] int64: the leaves of the paths in statistics and losses (outcomes in `COUNTED`)."""
    ends = leaves(tree)
    return ends[is_counted(tree.outcome[ends])]


_COUNTED = np.isin(np.arange(len(Outcome)), COUNTED)


def is_counted(outcome: Ints) -> Bools:
    """Whether each outcome, of any shape, is in `COUNTED`."""
    # A table: np.isin takes longer than the rest of a small tree's path view.
    return _COUNTED[outcome]


def path(tree: Tree, node: int) -> Ints:
    """The nodes from the root to `node`, both included, int64."""
    walk = [node]
    while tree.parent[walk[-1]] >= 0:
        walk.append(int(tree.parent[walk[-1]]))
    return np.asarray(walk[::-1], dtype=np.int64)


def levels(tree: Tree) -> Iterator[Ints]:
    """Yields the nodes by depth, root first, each level ascending: for recursions over whole levels."""
    depth = sum_to_root(tree, np.ones(tree.nodes, dtype=np.int64)).astype(np.int64) - 1
    order = np.argsort(depth, kind="stable")
    yield from np.split(order, np.cumsum(np.bincount(depth))[:-1])


def last_where(tree: Tree, wanted: Bools) -> Ints:
    """[N] int64: the last node with `wanted` [N] on the path to each node, itself included; the root without any."""
    last = np.where(wanted, np.arange(tree.nodes), tree.parent)
    last[0] = 0
    # Each round doubles the distance that `last` has searched.
    while np.any((further := last[last]) != last):
        last = further
    return last


# Where the order of a sum matters, nodes are added one by one: parents come before children, so one pass in node order
# propagates from parents, one in reverse from children. Other sums are differences of cumulative sums: a subtree is a
# slice of the nodes.


def _exact(value: Floats | Ints | Bools) -> bool:
    """Whether sums of `value` have no rounding errors, so that they do not depend on the order."""
    return value.dtype.kind != "f" or bool(np.all(value == np.rint(value)) and np.abs(value).sum() < 2**53)


def sum_to_root(tree: Tree, value: Floats | Ints | Bools) -> Floats:
    """[N] float64: the sum of `value` [N] over each node and all its ancestors. Faster for whole numbers."""
    if _exact(value):
        ended = np.bincount(tree.subtree_end, value, minlength=tree.nodes + 1)[: tree.nodes]
        return np.cumsum(value - ended, dtype=np.float64)
    total, parent = np.asarray(value, dtype=np.float64).tolist(), tree.parent.tolist()
    for node in range(1, tree.nodes):
        total[node] += total[parent[node]]
    return np.asarray(total, dtype=np.float64)


def sum_of_subtree(tree: Tree, value: Floats | Ints | Bools) -> Floats:
    """[N] float64: the sum of `value` [N] over each node and all its descendants. Faster for whole numbers."""
    if _exact(value):
        before = np.concatenate([[0.0], np.cumsum(value, dtype=np.float64)])
        return before[tree.subtree_end] - before[:-1]
    total, parent = np.asarray(value, dtype=np.float64).tolist(), tree.parent.tolist()
    for node in range(tree.nodes - 1, 0, -1):
        total[parent[node]] += total[node]
    return np.asarray(total, dtype=np.float64)


def sum_at(index: Ints, value: Floats, count: int) -> Floats:
    """[count] float64: entry i is the sum of `value` where `index` is i, added in order."""
    return np.bincount(index, value, minlength=count).astype(np.float64, copy=False)


def paths_through(tree: Tree) -> Ints:
    """[N] int64: number of counted paths through each node."""
    ends = np.zeros(tree.nodes, dtype=np.bool_)
    ends[counted(tree)] = True
    return sum_of_subtree(tree, ends).astype(np.int64)


def count_path_tokens(tree: Tree) -> int:
    """E: number of tokens in the `ACTION` nodes of all counted paths, a shared token once for each path."""
    return int((np.diff(tree.span) * paths_through(tree))[tree.kind == Kind.ACTION].sum())


def begins_turn(tree: Tree) -> Bools:
    """[N] bool: whether each node is the first `ACTION` node of a turn."""
    # The root has no parent, and is no action.
    return (tree.kind == Kind.ACTION) & (tree.kind[tree.parent] != Kind.ACTION)


def ends_turn(tree: Tree) -> Bools:
    """[N] bool: whether each node is the last `ACTION` node of a turn, which has the columns of the turn."""
    ends = np.asarray(tree.kind == Kind.ACTION)
    ends[tree.parent[ends & ~begins_turn(tree)]] = False
    return ends


def turns(tree: Tree) -> Ints:
    """[N] int64: the number of turns from the root to each node, the node included."""
    return sum_to_root(tree, begins_turn(tree)).astype(np.int64)


def turn_start(tree: Tree) -> Ints:
    """[N] int64: for an `ACTION` node the first node of its turn; for any other node itself."""
    return last_where(tree, (tree.kind != Kind.ACTION) | begins_turn(tree))


def text_start(tree: Tree) -> Ints:
    """[N] int64: the first node of each node's text (the root, or the last `EDIT`)."""
    return last_where(tree, tree.kind == Kind.EDIT)


def context(tree: Tree, node: int) -> Ints:
    """The context tokens of `node`, int32: from the start of its text to its parent."""
    start = int(text_start(tree)[node])
    walk = path(tree, node)
    read = walk[(walk >= start) & (walk != node)]
    return np.concatenate([tree.tokens_of(int(i)) for i in read] or [tree.token[:0]])


def truncated_states(tree: Tree) -> dict[int, Ints]:
    """Returns by leaf of each truncated path the tokens of the next context, int32.

    A leaf without tokens after an action is missing: its state exceeds the model's context.
    """
    ends = leaves(tree)
    ends = ends[tree.outcome[ends] == Outcome.TRUNCATED]
    written = (np.diff(tree.span)[ends] > 0) | (tree.kind[tree.parent[ends]] != Kind.ACTION)
    return {leaf: np.concatenate([context(tree, leaf), tree.tokens_of(leaf)]) for leaf in ends[written].tolist()}


def token_node(tree: Tree) -> Ints:
    """[T] int64: the node of each token."""
    return np.repeat(np.arange(tree.nodes, dtype=np.int64), np.diff(tree.span))


def sampled_tokens(tree: Tree) -> Ints:
    """[N] int64: number of sampled tokens of each node."""
    return np.bincount(token_node(tree), tree.sampled, minlength=tree.nodes).astype(np.int64)


def trained(tree: Tree) -> Bools:
    """[T] bool: sampled tokens on at least one counted path, the tokens of the policy loss."""
    return tree.sampled & (paths_through(tree)[token_node(tree)] > 0)
