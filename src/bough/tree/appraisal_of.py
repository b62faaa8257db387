"""The column of an appraiser that a piece needs."""

from bough.tree.appraisal import Appraisal
from bough.tree.stages import StageError
from bough.tree.tree import Tree


def appraisal_of(tree: Tree, column: str, setting: str) -> Appraisal:
    """The appraiser's column of a tree.

    Args:
        tree: The tree.
        column: Name of the column.
        setting: The setting with this name, for messages: "Judged.column".

    Raises:
        StageError: when the tree lacks the column; names the columns that it has.
    """
    found = tree.appraisals.get(column)
    if found is None:
        raise StageError(
            f"{setting}: got {column!r} and a tree with the columns {sorted(tree.appraisals)} (task {tree.task.id}); "
            "need a tree that has been appraised: add an appraiser with this column"
        )
    return found
