"""A folder of ALFWorld's own games, as `alfworld-download` makes it."""

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from bough.env.env import Split
from bough.usercode.json_file import read_object

FOLDERS: Mapping[Split, str] = {"train": "train", "dev": "valid_seen", "test": "valid_unseen"}
GAME = "one of ALFWorld's games, a JSON object"

EXCLUDED = ("movable", "Sliced")
"""Parts of the paths of games that ALFWorld excludes; its splits have 3,553, 140 and 134 games without them."""


def game_names(folder: Path, split: Split, task_types: Collection[str]) -> list[str]:
    """The paths of a split's games in the folder, sorted; as in ALFWorld, only games marked as solvable.

    A game's task type is in `traj_data.json` beside it, or else in the name of its folder.

    Raises:
        FileNotFoundError: when the folder has no games of the split.
        ValueError: when a file is no game, or no game of the split is marked as solvable.
    """
    return [name for name, kind in _games(folder, split) if kind in task_types]


def read_game(folder: Path, name: str) -> tuple[str, str, str]:
    """Returns domain, problem and grammar of a game of the folder.

    Raises:
        ValueError: when `name` is no game of the folder, or the file is no game.
    """
    path = _inside(folder, name)
    if path is None:
        raise ValueError(f"AlfWorld: got the game {name[:200]!r}; need a .tw-pddl file in {folder}")
    game = read_object(path, GAME)
    for part in ("pddl_domain", "pddl_problem", "grammar"):
        if not isinstance(game.get(part), str):
            raise ValueError(f"{path}: got {game.get(part)!r:.200} as {part}; need a text")
    return game["pddl_domain"], game["pddl_problem"], game["grammar"]


def _inside(folder: Path, name: str) -> Path | None:
    """The path of a game in a folder; None for a name that is no game in it."""
    try:
        path = (folder / name).resolve()
        known = name.endswith(".tw-pddl") and path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return None
    return path if known else None


@lru_cache(maxsize=16)
def _games(folder: Path, split: Split) -> tuple[tuple[str, str], ...]:
    """The path and the task type of each game of a split, in the order of the paths."""
    inside = folder / FOLDERS[split]
    paths = sorted(inside.rglob("*.tw-pddl"))
    if not paths:
        raise FileNotFoundError(f"{inside}: got no .tw-pddl game; need a folder with train, valid_seen, valid_unseen")
    found: list[tuple[str, str]] = []
    for path in paths:
        name, beside = path.relative_to(folder).as_posix(), path.with_name("traj_data.json")
        if not any(each in name for each in EXCLUDED) and read_object(path, GAME).get("solvable") is True:
            kind = (
                read_object(beside, GAME).get("task_type")
                if beside.is_file()
                else path.parent.parent.name.partition("-")[0]
            )
            found.append((name, str(kind)))
    if not found:
        raise ValueError(f'{inside}: got {len(paths)} games, none with "solvable": true; need games that can be solved')
    return tuple(found)
