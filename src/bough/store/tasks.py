"""Tasks on disk: one JSON object a line."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from bough.store.atomic import write_bytes
from bough.tree import Task, read_action

EXAMPLE = '{"id": "lake-1", "seed": 0, "data": {"rows": ["SF", "FG"]}}'


def write_tasks(path: Path, tasks: Sequence[Task]) -> None:
    """Write tasks as JSONL, completely or not at all.

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
    line_of: dict[str, int] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            task = _task(line)
        except ValueError as error:
            excerpt = line.decode(errors="replace").strip()
            excerpt = excerpt if len(excerpt) <= 80 else f"{excerpt[:80]}..."
            raise ValueError(
                f"{path}, line {number}: {error}, got {excerpt}; need one task, such as {EXAMPLE}"
            ) from error
        if task.id in line_of:
            raise ValueError(
                f"{path}, lines {line_of[task.id]} and {number}: got id {task.id!r} twice; need another for each task"
            )
        line_of[task.id] = number
        tasks.append(task)
    if not tasks:
        raise ValueError(f"{path}: got no task; need one a line, such as {EXAMPLE}")
    return tasks


def _text(tasks: Sequence[Task]) -> bytes:
    return "".join(json.dumps(task.record()) + "\n" for task in tasks).encode()


def _task(line: bytes) -> Task:
    """Parse one task; raises `ValueError` with the problem, without the line."""
    try:
        row: object = json.loads(line)
    except UnicodeDecodeError as error:
        raise ValueError(f"no UTF-8 ({error.reason} {error.object[error.start]:#04x})") from error
    except ValueError as error:
        raise ValueError(f"no JSON ({error})") from error
    if not isinstance(row, dict):
        raise ValueError("no JSON object")
    fields = cast("dict[str, object]", row)
    if unknown := fields.keys() - {"id", "seed", "data", "start"}:
        raise ValueError(f"unknown field {sorted(unknown)}")
    name, seed, data = fields.get("id"), fields.get("seed", 0), fields.get("data", {})
    start: object = fields.get("start", [])
    if not isinstance(name, str) or not name:
        raise ValueError("no 'id' that is a text of at least one letter")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ValueError("a 'seed' that is no whole number")
    if not isinstance(data, dict):
        raise ValueError("a 'data' that is no object")
    try:
        actions = tuple(map(read_action, cast("list[object]", start if isinstance(start, list) else [None])))
    except (KeyError, TypeError) as error:
        raise ValueError("a 'start' that is no list of actions, each a text or a text with calls") from error
    return Task(id=name, seed=seed, data=cast("dict[str, object]", data), start=actions)
