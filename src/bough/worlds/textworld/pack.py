"""Packs of TextWorld games: their names, splits and files."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypedDict, cast

from bough.env.env import Split
from bough.env.splits import SHARES, split_of
from bough.usercode.json_file import read_object
from bough.worlds.textworld.archive import SUFFIXES, game_hash, unpack

SHIPPED = Path(__file__).parent / "games"
"""The pack shipped with Bough, made by `scripts/make_textworld_games.py`."""

ARCHIVE = ".tar.xz"


class Entry(TypedDict):
    """The entry of one game in `index.json`.

    Attributes:
        split: The only split with this game.
        level: Difficulty, from 1; 0 when unknown.
        rooms: Number of rooms; 0 when unknown.
        steps: Number of commands in TextWorld's demonstration; 0 when unknown.
        archive: The archive of the game's files; "" when they are plain files in the folder.
        sha256: Hash of the files, the story first.
    """

    split: Split
    level: int
    rooms: int
    steps: int
    archive: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A set of games.

    Attributes:
        folder: The folder of the pack.
        rules: The instructions shared by all games.
        games: Name -> entry, sorted by name.
        data_hash: SHA-256 over the index, and so over every file of every game.
    """

    folder: Path
    rules: str
    games: Mapping[str, Entry]
    data_hash: str

    def story(self, name: str) -> Path:
        """Returns the path of a game's compiled story, unpacked when needed, with its description beside it.

        Archives are unpacked once into the user's cache (`XDG_CACHE_HOME`, otherwise `~/.cache`): 40 MB for each 100
        games. Several processes may unpack at the same time.

        Raises:
            ValueError: when the pack has no such game, or the hash of the files differs from the index.
            OSError: when a file is missing, or the cache cannot be written.
        """
        if name not in self.games:
            raise ValueError(f"TextWorld: {self.folder} has no game {name!r}; need one of its {len(self.games)} games")
        entry = self.games[name]
        folder = self._unpacked(entry["archive"]) if entry["archive"] else self.folder
        story = folder / f"{name}.z8"
        if (found := _sha256(story)) != entry["sha256"]:
            raise ValueError(
                f"TextWorld: the files of game {name} in {folder} have SHA-256 {found}; need {entry['sha256']}. "
                "Delete that folder if it is in a cache, otherwise restore the pack"
            )
        return story

    def _unpacked(self, archive: str) -> Path:
        home = os.environ.get("XDG_CACHE_HOME")
        cache = (Path(home) if home else Path.home() / ".cache") / "bough" / "textworld" / self.data_hash[:16]
        folder, source = cache / archive.removesuffix(ARCHIVE), self.folder / archive
        if folder.exists():
            return folder
        try:
            unpack(
                source,
                folder,
                {name: each["sha256"] for name, each in self.games.items() if each["archive"] == archive},
            )
        except OSError as error:
            # Another process may have unpacked the same files first.
            if not folder.exists():
                raise OSError(
                    f"TextWorld: cannot unpack {source} into {folder} ({error}); need 40 MB there, or XDG_CACHE_HOME "
                    "set to a folder that can be written"
                ) from error
        return folder


@lru_cache(maxsize=8)
def open_pack(folder: Path) -> Pack:
    """Opens the pack in a folder with an `index.json`, or with `.z8` games and their `.json` beside them.

    Without an index, the hash of a game's files decides its split.

    Raises:
        FileNotFoundError: when there is no such folder, or no game in it.
        ValueError: when the index cannot be read.
    """
    index = folder / "index.json"
    if not index.exists():
        return _loose(folder)
    try:
        about = read_object(index)
        rules: object = about.get("rules")
        if not isinstance(rules, str) or not isinstance(about.get("games"), dict):
            raise ValueError("it has no rules or no games")
        games = cast("dict[str, Entry]", about["games"])
        for name, entry in games.items():
            _check(name, entry)
    except ValueError as error:
        raise ValueError(f"TextWorld: got an index that cannot be read, {index} ({error}); restore the pack") from error
    return Pack(
        folder=folder,
        rules=rules,
        games=games,
        data_hash=hashlib.sha256(index.read_bytes()).hexdigest(),
    )


def _loose(folder: Path) -> Pack:
    names = sorted(path.stem for path in folder.glob("*.z8") if path.with_suffix(".json").exists())
    if not names:
        raise FileNotFoundError(
            f"TextWorld.games: got {folder}, which holds no game; need a folder with an index.json, or with games "
            "that TextWorld compiled (name.z8 and name.json)"
        )
    games: dict[str, Entry] = {}
    for name in names:
        found = _sha256(folder / f"{name}.z8")
        games[name] = Entry(split=split_of(found), level=0, rooms=0, steps=0, archive="", sha256=found)
    whole = hashlib.sha256(json.dumps(games, sort_keys=True).encode()).hexdigest()
    return Pack(folder=folder, rules="", games=games, data_hash=whole)


def _check(name: str, entry: object) -> None:
    """Check an entry of an index, whose names become those of files."""
    row: dict[str, object] = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    for file in (name, row.get("archive")):
        if not isinstance(file, str) or (file and Path(file).name != file) or "\0" in file:
            raise ValueError(f"game {name[:80]!r} has the file {str(file)[:80]!r}; need a name without a directory")
    if row.get("split") not in SHARES or not all(
        isinstance(row.get(each), int) for each in ("level", "rooms", "steps")
    ):
        raise ValueError(f"game {name!r} has {str(row)[:80]}; need a split, and whole numbers level, rooms and steps")
    if row["archive"] and not str(row["archive"]).endswith(ARCHIVE):
        raise ValueError(f"game {name!r} has the archive {row['archive']!r}; need a name that ends in {ARCHIVE}")
    if not isinstance(row.get("sha256"), str) or not name:
        raise ValueError(f"game {name!r} has no hash, or no name")


def _sha256(story: Path) -> str:
    """Hashes both files of a game."""
    return game_hash(tuple(story.with_suffix(suffix).read_bytes() for suffix in SUFFIXES))
