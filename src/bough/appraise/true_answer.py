"""The true answer of a task, for probes."""

from collections.abc import Sequence
from typing import cast

from bough.tree import Task


def true_answer(task: Task, field: str) -> str | None:
    """The field of the task's data as a text; of a list, also of lists, the first; None where there is none."""
    found: object = task.data.get(field)
    while isinstance(found, list | tuple):
        items = cast("Sequence[object]", found)
        found = items[0] if items else None
    return None if found is None else str(found)
