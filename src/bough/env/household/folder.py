"""A folder of ALFWorld's own games, as `alfworld-download` makes it."""

import json
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from bough.env.env import Split

FOLDERS: Mapping[Split, str] = {"train": "train", "dev": "valid_seen", "test": "valid_unseen"}


def game_names(folder: Path, split: Split, task_types: Collection[str]) -> list[str]:
    """The paths of a split's solvable games in the folder, sorted.

    A game's task type is in `traj_data.json` beside it, or else in the name of its folder.

    Raises:
        FileNotFoundError: when the folder has no games of the split.
    """
    return [name for name, kind in _games(folder, split) if kind in task_types]


def read_game(folder: Path, name: str) -> tuple[str, str, str]:
    """Returns domain, problem and grammar of a game of the folder.

    Raises:
        ValueError: when `name` is no game of the folder, or the file is no game.
    """
    path = (folder / name).resolve()
    if not name.endswith(".tw-pddl") or not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise ValueError(f"AlfWorld: got the game {name!r}; need a .tw-pddl file in {folder}")
    game = _read(path)
    try:
        return game["pddl_domain"], game["pddl_problem"], game["grammar"]
    except KeyError as missing:
        raise ValueError(f"{path}: got no {missing}; need pddl_domain, pddl_problem and grammar") from missing


@lru_cache(maxsize=16)
def _games(folder: Path, split: Split) -> tuple[tuple[str, str], ...]:
    inside = folder / FOLDERS[split]
    found: list[tuple[str, str]] = []
    for path in sorted(inside.rglob("*.tw-pddl")):
        beside = path.with_name("traj_data.json")
        kind = _read(beside).get("task_type") if beside.is_file() else path.parent.parent.name.partition("-")[0]
        if _read(path).get("solvable") is not False:
            found.append((path.relative_to(folder).as_posix(), str(kind)))
    if not found:
        raise FileNotFoundError(f"{inside}: got no .tw-pddl game; need a folder with train, valid_seen, valid_unseen")
    return tuple(found)


def _read(path: Path) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", json.loads(path.read_text()))
    except ValueError as broken:
        raise ValueError(f"{path}: got no JSON ({broken}); need one of ALFWorld's games") from broken
