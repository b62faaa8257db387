"""Tasks from rows: mappings in a list, in a file of JSON lines, or made by a function."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, TypeAlias, cast, get_args

from bough.env.env import Split
from bough.env.splits import instance_task, split_of
from bough.tree import Task
from bough.usercode.address import address_of, find_function
from bough.usercode.json_file import parse_object
from bough.usercode.loop import synchronous
from bough.usercode.text_file import read_lines

Row: TypeAlias = Mapping[str, Any]
"""One task as the user writes it: its "prompt" is the first message; "id" and "split" are optional."""

RowSource: TypeAlias = str | Path | Sequence[Row | str] | Callable[[], Iterable[Row | str]]
"""Rows, a file of JSON lines, or a function that returns rows. A string among the rows is a prompt."""

NEED = 'a JSON object with a text under "prompt"'

SPLITS: tuple[Split, ...] = get_args(Split)


def place_of(source: RowSource) -> str | tuple[str, ...]:
    """The source as a setting: a path, the address of a function, or lines of JSON.

    Raises:
        ValueError: when a row cannot be written as JSON, or the function is not at the top of a module.
    """
    if isinstance(source, str | Path):
        return str(Path(source).expanduser().resolve())
    if callable(source):
        return address_of(source)
    return tuple(_line(row) for row in source)


class RowTasks:
    """The tasks of rows, by split.

    The row's "split" decides where it is given, else a hash of the row without "id" and "split". So equal rows are
    always in one split. Equal rows without different ids are one task.

    Args:
        name: Name of the environment, for the ids of tasks.
        place: As returned by `place_of`.

    Raises:
        ValueError: when a row has no prompt or an unknown split, or two rows have one id, or equal rows two splits.
        OSError: when the file cannot be read.
    """

    def __init__(self, name: str, place: str | tuple[str, ...]) -> None:
        lines = _lines(name, place)
        self.name = name
        self.digest = sha256("\n".join(line for _, line in lines).encode()).hexdigest()
        self.by_split: dict[Split, list[Task]] = {split: [] for split in SPLITS}
        splits: dict[str, Split] = {}
        contents: dict[str, str] = {}
        for where, line in lines:
            row = _row(line, where)
            content = json.dumps({key: row[key] for key in row if key not in ("id", "split")}, sort_keys=True)
            split = cast("Split", row.get("split") or split_of(content))
            if split not in SPLITS:
                raise ValueError(f"{where}: got the split {split!r:.80}; need one of {', '.join(SPLITS)}")
            if splits.setdefault(content, split) != split:
                raise ValueError(
                    f"{where}: got equal tasks in the splits {splits[content]} and {split}; need one split"
                )
            task = instance_task(name=name, content=content, data=row)
            if row.get("id") not in (None, ""):
                task = Task(id=str(row["id"]), seed=task.seed, data=row)
            if task.id not in contents:
                self.by_split[split].append(task)
            elif contents[task.id] != content:
                raise ValueError(f"{where}: got a second task with the id {task.id!r:.80}; need different ids")
            contents[task.id] = content
        self.first = next((task for tasks in self.by_split.values() for task in tasks), None)

    def draw(self, split: Split, count: int, seed: int) -> list[Task]:
        """Returns `count` different tasks of a split, in an order that depends on the seed.

        Raises:
            ValueError: when the split has fewer.
        """
        tasks = self.by_split[split]
        if not 0 <= count <= len(tasks):
            sizes = ", ".join(f"{len(found)} of {name!r}" for name, found in self.by_split.items())
            raise ValueError(
                f"{self.name}: got count={count} for split {split!r}; there are {sizes}. Set tasks.count="
                f'{len(tasks)} or less (evaluation.tasks.count for held-out tasks), add tasks, or rows with a "split"'
            )
        return Random(f"{self.name} {seed} {split}").sample(tasks, len(tasks))[:count]


def _lines(name: str, place: str | tuple[str, ...]) -> Sequence[tuple[str, str]]:
    """The rows as lines of JSON, each after its place."""
    if isinstance(place, str) and (":" not in Path(place).name or Path(place).is_file()):
        return [*read_lines(Path(place))]
    lines = (
        place
        if isinstance(place, tuple)
        else map(_line, cast("Iterable[Row | str]", synchronous(find_function(place))()))
    )
    return [(f"{name}: task {number}", line) for number, line in enumerate(lines, 1)]


def _line(row: Row | str) -> str:
    try:
        return json.dumps({"prompt": row} if isinstance(row, str) else dict(row), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"tasks: got the row {str(row)[:80]}; need a mapping that JSON can write ({error})") from error


def _row(line: str, where: str) -> dict[str, Any]:
    row = parse_object(line, where, NEED)
    if not isinstance(row.get("prompt"), str):
        raise ValueError(f"{where}: got {line[:80]}; need {NEED}")
    return row
