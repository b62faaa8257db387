"""The boxes and points of a tree, for pieces that cannot do without them."""

from bough.tree.pointings import Pointings
from bough.tree.stages import StageError
from bough.tree.tree import Tree


def pointings_of(tree: Tree) -> Pointings:
    """Returns `Tree.pointings`.

    Raises:
        StageError: when a record of a pointing cannot be read.
    """
    if tree.pointings.problem:
        raise StageError(
            f"Step.info['pointing'] of task {tree.task.id}: got {tree.pointings.problem}; need `Pointing.record()`"
        )
    return tree.pointings
