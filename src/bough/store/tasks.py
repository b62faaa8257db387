"""Tasks on disk: one JSON object a line."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from bough.store.atomic import write_bytes
from bough.tree import Task
from bough.usercode.json_file import json_text, read_objects, shown

EXAMPLE = '{"id": "lake-1", "seed": 0, "data": {"rows": ["SF", "FG"]}}'


def write_tasks(path: Path, tasks: Sequence[Task]) -> None:
    """Write tasks as JSONL, completely or not at all; a number that is not finite is written as null.

    Raises:
        TypeError: when a task's data holds a value that JSON cannot write.
        StoreError: when the disk is full.
    """
    write_bytes(path, _text(tasks))


def digest_tasks(tasks: Sequence[Task]) -> str:
    """The BLAKE2b checksum, in hex, of the file of `write_tasks`: identifies a set of tasks in a manifest."""
    return hashlib.blake2b(_text(tasks)).hexdigest()


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a JSONL file, in order. Empty lines are skipped; all fields but `id` are optional.

    Raises:
        FileNotFoundError: when there is no such file.
        ValueError: when a line is no task, two tasks have one id, or there is no task at all; names the line.
    """
    tasks: list[Task] = []
    place_of: dict[str, str] = {}
    for where, row in read_objects(path, f"one task, such as {EXAMPLE}"):
        try:
            task = Task.parse(row)
        except ValueError as error:
            row_text = shown(json.dumps(row, ensure_ascii=False))
            raise ValueError(f"{where}: got {error!s:.300}, in {row_text}; need one task, such as {EXAMPLE}") from error
        if task.id in place_of:
            raise ValueError(
                f"{where}: got id {task.id!r:.80}, which {place_of[task.id]} has too; need another for each task"
            )
        place_of[task.id] = where
        tasks.append(task)
    if not tasks:
        raise ValueError(f"{path}: got no task; need one a line, such as {EXAMPLE}")
    return tasks


def _text(tasks: Sequence[Task]) -> bytes:
    return "".join(json_text(task.record()) + "\n" for task in tasks).encode()
