"""The true answer of a task, for probes."""

from collections.abc import Sequence
from typing import cast

from bough.appraise.path_fields import path_fields
from bough.needs import Need, task_field
from bough.tree import Task, Ternary, Tree, counted


def answer_field(field: str) -> frozenset[Need]:
    """The need of a probe whose answers are in this field of the tasks; nothing for ""."""
    remedy = 'name one that they have, or field="" for the last action of a successful path'
    return frozenset({task_field(field, remedy)} if field else ())


def true_answer(trees: Sequence[Tree], field: str) -> str | None:
    """The true answer of the task of these trees.

    It is the field `field` of the task's data, the first element of a list or of nested lists. For a task without the
    field it is the last action of its first successful path; None without one.
    """
    if not trees:
        return None
    found = _in_data(trees[0].task, field)
    return _of_success(trees) if found is None else found


def _in_data(task: Task, field: str) -> str | None:
    found: object = task.data.get(field)
    while isinstance(found, list | tuple):
        items = cast("Sequence[object]", found)
        found = items[0] if items else None
    return None if found is None else str(found)


def _of_success(trees: Sequence[Tree]) -> str | None:
    for tree in trees:
        for leaf in counted(tree).tolist():
            if tree.success[leaf] == Ternary.YES:
                return path_fields(tree, leaf)["answer"] or None
    return None
