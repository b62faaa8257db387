"""The step that is asked for after a task's history: to improve on the last answer, or to diverge from it."""

from dataclasses import replace
from typing import Literal, TypeAlias

from bough.tree.task import Task

IterationStep: TypeAlias = Literal["improve", "diverge"]
"""What the answer after a history is to do."""

ITERATION = "iteration"
"""The key of the step in `Task.data`."""


def with_iteration(task: Task, step: IterationStep) -> Task:
    """Returns a task with a step; it has an id of its own, so its paths are a group of their own."""
    plain = without_iteration(task)
    return replace(plain, id=f"{plain.id} {step}", data={**plain.data, ITERATION: step})


def without_iteration(task: Task) -> Task:
    """Returns the task without its step; the task itself where it has none."""
    step = task.data.get(ITERATION)
    if step is None:
        return task
    data = {name: value for name, value in task.data.items() if name != ITERATION}
    return replace(task, id=task.id.removesuffix(f" {step}"), data=data)
