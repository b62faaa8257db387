"""Marks of tasks: what one piece adds to a task's data for another one."""

from dataclasses import dataclass, replace

from bough.tree.task import Task


@dataclass(frozen=True, slots=True)
class TaskMark:
    """A text in the data of some tasks: one piece adds it and another reads it; each declares the mark.

    Examples:
        >>> level = TaskMark("level")
        >>> level.add(Task(id="a"), "hard").id, level.of(level.add(Task(id="a"), "hard"))
        ('a hard', 'hard')

    Attributes:
        name: Its key in `Task.data`; two declarations with one name are the same mark.
    """

    name: str

    def of(self, task: Task) -> object:
        """The mark of a task; None without one."""
        return task.data.get(self.name)

    def add(self, task: Task, value: str) -> Task:
        """Returns a task with the mark; it has an id of its own, so its paths are a group of their own."""
        plain = self.remove(task)
        return replace(plain, id=f"{plain.id} {value}", data={**plain.data, self.name: value})

    def remove(self, task: Task) -> Task:
        """Returns the task without its mark; the task itself where it has none."""
        value = self.of(task)
        if value is None:
            return task
        return replace(self.hide(task), id=task.id.removesuffix(f" {value}"))

    def hide(self, task: Task) -> Task:
        """Returns the task with its id, and with data without the mark."""
        return replace(task, data={name: value for name, value in task.data.items() if name != self.name})
