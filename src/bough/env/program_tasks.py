"""Tasks of an agent program, from a file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar

from bough.env.env import Branching, Split, State, Step
from bough.env.splits import split_of
from bough.needs import PROGRAM, Need
from bough.tree import Outcome, Task
from bough.usercode.json_file import read_objects

NEED = 'one task, such as {"id": "sum-1", "data": {"question": "2 + 3?"}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTasks:
    """Tasks for the explorer `Program`; the program is agent and environment in one.

    The file has a JSON object a line, {"id": "sum-1", "data": {"question": "2 + 3?", "answer": 5}}. A hash of the id
    decides the split of a task: 80 % train, 10 % dev, 10 % test. The program gets the whole object. Other files for
    training and evaluation are `tasks.file` and `evaluation.tasks.file`.

    Attributes:
        file: The file; "" where `tasks.file` and `evaluation.tasks.file` give the tasks.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({PROGRAM})

    file: str = ""
    branching = Branching.COPY
    instructions = ""

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Draws tasks of a split.

        Raises:
            ValueError: when there is no such file, a line is no task, or the split has too few tasks.
        """
        if not Path(self.file).is_file():
            raise ValueError(
                f"ProgramTasks.file: got {self.file!r}; need a file of tasks, or tasks.file and evaluation.tasks.file"
            )
        found = [_task(where, row) for where, row in read_objects(Path(self.file), NEED)]
        own = [task for task in found if split_of(task.id) == split]
        if len(own) < count:
            raise ValueError(
                f"ProgramTasks.file: got {len(own)} tasks of the split {split!r} in the {len(found)} of {self.file}; "
                f"need {count}: add tasks, or lower the count"
            )
        return Random(seed).sample(own, count)

    def start(self, task: Task) -> State:
        """The task's data as text, from which `Tiny` builds its vocabulary."""
        return State(observation=json.dumps(task.data), key="", value=None)

    def step(self, state: State, action: str) -> Step:
        """Ends the episode: only a program acts."""
        del action
        return Step(state=state, outcome=Outcome.TERMINATED, valid=False)


def _task(where: str, row: Mapping[str, object]) -> Task:
    try:
        return Task.parse(row)
    except ValueError as error:
        raise ValueError(f"{where}: got {str(row)[:80]!r} ({error!s:.300}); need {NEED}") from error
