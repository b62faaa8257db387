"""Selects the paths with a teacher's actions in the trees of a step, as demonstrations."""

from collections.abc import Sequence

import numpy as np

from bough.tree import Credited, Kind, Source, Ternary, Tree, counted, keep_paths, sum_to_root


def teacher_paths(credited: Sequence[Credited]) -> list[Tree]:
    """The successful paths of each tree in which a teacher acted; trees without such paths are omitted.

    Packed as demonstrations, only the teacher's actions on them are trained.
    """
    trees: list[Tree] = []
    for each in credited:
        tree = each.tree
        helped = sum_to_root(tree, ((tree.source == Source.TEACHER) & (tree.kind == Kind.ACTION)).astype(np.float64))
        ends = counted(tree)
        ends = ends[(helped[ends] > 0) & (tree.success[ends] == Ternary.YES)]
        if len(ends):
            trees.append(keep_paths(each.rewarded, ends).tree)
    return trees
