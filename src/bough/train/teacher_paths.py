"""What a teacher wrote in the trees of a step, as demonstrations."""

from collections.abc import Sequence

import numpy as np

from bough.tree import Credited, Kind, Source, Tree, counted, keep_paths, sum_to_root


def teacher_paths(credited: Sequence[Credited]) -> list[Tree]:
    """The paths of each tree in which a teacher acted and that solved their task; trees without any are left out.

    Packed as demonstrations, the teacher's actions on them are learned from, and nothing else is.
    """
    trees: list[Tree] = []
    for each in credited:
        tree = each.tree
        helped = sum_to_root(tree, ((tree.source == Source.TEACHER) & (tree.kind == Kind.ACTION)).astype(np.float64))
        ends = [leaf for leaf in map(int, counted(tree)) if helped[leaf] and tree.info[leaf].get("success") is True]
        if ends:
            trees.append(keep_paths(each.rewarded, np.asarray(ends, dtype=np.int64)).tree)
    return trees
