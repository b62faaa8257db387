"""How paths ended, and the node that final rewards are paid at: the last action."""

import numpy as np

from bough.tree.marks import Kind, Ternary
from bough.tree.tree import Bools, Ints, Tree
from bough.tree.walk import leaves


def solved(tree: Tree) -> Bools:
    """[N] bool: the leaves with success."""
    ends = np.zeros(tree.nodes, dtype=np.bool_)
    ends[leaves(tree)] = True
    return ends & (tree.success == Ternary.YES)


def last_action(tree: Tree) -> Ints:
    """[N] int64: the last `ACTION` on the path to each node, the node included; the root where there is none."""
    last, parent = [0] * tree.nodes, tree.parent.tolist()
    acts = (tree.kind == Kind.ACTION).tolist()
    for node in range(1, tree.nodes):
        last[node] = node if acts[node] else last[parent[node]]
    return np.asarray(last, dtype=np.int64)
