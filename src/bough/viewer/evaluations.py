"""The held-out results of a run, task by task."""

import re
from pathlib import Path
from typing import TypeAlias, cast

from bough.store import StoreError
from bough.store.atomic import read_stored

Table: TypeAlias = dict[str, object]

FILE = re.compile(r"step_(\d+)\.json")


def evaluations(directory: Path) -> Table:
    """Success of each held-out task at each evaluation.

    `steps` ascends; `tasks` has by the id of a task a value for each step: true, false, or None where the task failed
    or was not played. `damaged` has the files that could not be read, with the reason.
    """
    found: dict[int, dict[str, bool]] = {}
    damaged: dict[str, str] = {}
    folder = directory / "heldout"
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (match := FILE.fullmatch(file.name)) is None:
            continue
        try:
            found[int(match[1])] = cast("dict[str, bool]", read_stored(file).get("tasks", {}))
        except StoreError as error:
            damaged[file.name] = str(error)
    steps = sorted(found)
    names = dict.fromkeys(name for step in steps for name in found[step])
    return {
        "steps": steps,
        "tasks": {name: [found[step].get(name) for step in steps] for name in names},
        "damaged": damaged,
    }
