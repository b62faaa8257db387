"""How paths ended, and the node that final rewards are paid at: the last action."""

import numpy as np

from bough.tree.marks import Kind, Ternary
from bough.tree.tree import Bools, Ints, Tree
from bough.tree.walk import last_where, leaves


def solved(tree: Tree) -> Bools:
    """[N] bool: the leaves with success."""
    ends = np.zeros(tree.nodes, dtype=np.bool_)
    ends[leaves(tree)] = True
    return ends & (tree.success == Ternary.YES)


def last_action(tree: Tree) -> Ints:
    """[N] int64: the last `ACTION` on the path to each node, the node included; the root where there is none."""
    return last_where(tree, tree.kind == Kind.ACTION)


def pay_places(tree: Tree, ends: Ints) -> Ints:
    """[P] int64: where the path to each leaf [P] is paid as a whole, so that no other path has its pay.

    It is the last action; the leaf, where that action ends several of the paths or the path has none.
    """
    last = last_action(tree)[ends]
    own = (np.bincount(last, minlength=tree.nodes)[last] == 1) & (tree.kind[last] == Kind.ACTION)
    return np.where(own, last, ends).astype(np.int64)
