"""How paths ended, and the node that final rewards are paid at: the last action."""

import numpy as np

from bough.tree.marks import Kind, Ternary
from bough.tree.tree import Bools, Ints, Tree
from bough.tree.walk import last_where, leaves, sum_of_subtree


def solved(tree: Tree) -> Bools:
    """[N] bool: the leaves with success."""
    ends = np.zeros(tree.nodes, dtype=np.bool_)
    ends[leaves(tree)] = True
    return ends & (tree.success == Ternary.YES)


def last_action(tree: Tree) -> Ints:
    """[N] int64: the last `ACTION` on the path to each node, the node included; the root where there is none."""
    return last_where(tree, tree.kind == Kind.ACTION)


def path_reward_nodes(tree: Tree, ends: Ints) -> Ints:
    """[P] int64: the node at which the path to each leaf [P] is rewarded as a whole, so that no other path is.

    It is the last action; the leaf, where another of the paths goes through that action or the path has none.
    """
    last = last_action(tree)[ends]
    through = sum_of_subtree(tree, np.bincount(ends, minlength=tree.nodes).astype(np.float64))
    own = (through[last] == 1) & (tree.kind[last] == Kind.ACTION)
    return np.where(own, last, ends).astype(np.int64)


def success_reward_nodes(tree: Tree) -> Ints:
    """[S] int64: the node at which the path to each of S solved leaves is rewarded, so that no path without success is.

    It is the last action; the leaf, where a path goes through that action that is not solved, or that has later ones.
    Solved paths that end with the same action are rewarded there together.
    """
    ends = leaves(tree)
    won = ends[solved(tree)[ends]]
    last = last_action(tree)[won]
    through = sum_of_subtree(tree, np.bincount(ends, minlength=tree.nodes).astype(np.float64))
    alone = np.bincount(last, minlength=tree.nodes)[last] == through[last]
    return np.where(alone, last, won).astype(np.int64)
