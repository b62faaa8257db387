"""Labels of nodes that occur again below a node with the same label."""

import numpy as np

from bough.tree.tree import Bools, Floats, Ints, Tree


def repeated(tree: Tree, node: Ints, label: Ints) -> Bools:
    """[M] bool: whether another of the nodes `node` [M], ascending, has the same `label` [M] and is an ancestor.

    A path of three nodes with the labels 7, 8, 7 gives False, False, True; siblings do not count.
    """
    found = np.zeros(len(node), dtype=np.bool_)
    order = np.argsort(label, kind="stable")
    # The nodes of a label are neighbours now. An earlier one is an ancestor where its subtree ends after the node.
    group = np.cumsum(np.diff(label[order], prepend=label[order][:1]) != 0)
    offset = group * (tree.nodes + 1)
    furthest_end = np.maximum.accumulate(tree.subtree_end[node[order]] + offset)
    found[order[1:]] = furthest_end[:-1] - offset[1:] > node[order[1:]]
    return found


def largest_above(tree: Tree, node: Ints, label: Ints, value: Floats) -> Floats:
    """[M] float64: the largest `value` [M] of the ancestors with the same `label` [M]; 0 without any above 0.

    The nodes are `node` [M], ascending: the values 0.5, 2 and 1 of one label on a path give 0, 0.5 and 2.
    """
    largest = np.zeros(len(node))
    again = np.isin(label, label[repeated(tree, node, label)])
    # By label, the path of nodes whose subtrees have not ended: the end, and the largest value down to the node.
    opened: dict[int, list[tuple[int, float]]] = {}
    rows = np.flatnonzero(again)
    ends, nodes = tree.subtree_end[node[rows]].tolist(), node[rows].tolist()
    for row, own, end, name, found in zip(
        rows.tolist(), nodes, ends, label[rows].tolist(), value[rows].tolist(), strict=True
    ):
        above = opened.setdefault(name, [(tree.nodes, 0.0)])
        while above[-1][0] <= own:
            above.pop()
        largest[row] = above[-1][1]
        above.append((end, max(found, above[-1][1])))
    return largest
