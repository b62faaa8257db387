"""New branches of stored trees, in a folder of their own beside the runs."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias, cast

from bough.store import StoreError, write_trees
from bough.store.atomic import append_bytes, read_stored, write_json
from bough.tree import Credited, Rewarded
from bough.usercode.json_file import json_text
from bough.viewer.stored_trees import TreeName, read_file
from bough.viewer.turn_nodes import drawn

Row: TypeAlias = Mapping[str, object]

FILES = {"demonstrations": "demonstrations.jsonl", "preferences": "preferences.jsonl"}
"""The files of saved rows, by kind."""

ADDING = threading.Lock()
"""Held while a branch gets its number and its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A turn in a stored tree, or in a branch from it.

    Attributes:
        branch: Number of the branch; None for the tree itself.
        node: A node of the branch's or the tree's own tree.
    """

    branch: int | None
    node: int

    def __str__(self) -> str:
        return str(self.node) if self.branch is None else f"b{self.branch}:{self.node}"

    @classmethod
    def read(cls, text: object) -> "Place":
        """The place that a text names: `12`, or `b3:12` in branch 3.

        Raises:
            StoreError: when it names none.
        """
        branch, colon, node = str(text).rpartition(":")
        numbers = [branch.removeprefix("b"), node] if colon else [node]
        if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers):
            raise StoreError(f"got the node {text!r:.40}; need a number, such as 12, or b3:12 in branch 3")
        return cls(branch=int(numbers[0]) if colon else None, node=int(node))


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchFolder:
    """The branches from one tree of a run: for each a file of trees, and a JSON file with where it begins.

    Attributes:
        folder: The folder, made with the first branch.
    """

    folder: Path

    def numbers(self) -> list[int]:
        """The numbers of the branches, ascending."""
        return sorted(int(each.stem) for each in self.folder.glob("*.json") if each.stem.isdigit())

    def add(self, rewarded: Rewarded, at: Place, about: Row) -> int:
        """Store a branch, whose tree has the whole path from the root, and return its number.

        Raises:
            StoreError: when the disk is full.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with ADDING:
            number = max(self.numbers(), default=-1) + 1
            write_trees(self._file(number), [rewarded])
            made = datetime.now(UTC).isoformat(timespec="seconds")
            write_json(self.folder / f"{number:04d}.json", {"at": str(at), "made": made, **about})
        return number

    def tree(self, number: int) -> Credited:
        """The tree of a branch.

        Raises:
            StoreError: when there is no such branch, or it is damaged.
        """
        if number not in self.numbers():
            raise StoreError(f"{self.folder}: got branch {number}; need one of {self.numbers()}")
        return read_file(self._file(number))[0]

    def drawn(self, number: int) -> dict[str, object]:
        """What a branch adds to the drawing: the columns of `turn_nodes.drawn` without the turns before it.

        The first new turns have the parent -1.
        """
        about = read_stored(self.folder / f"{number:04d}.json")
        columns = drawn(self.tree(number))
        new = [at for at, turn in enumerate(cast("list[int]", columns["turn"])) if turn > about["turns"]]
        index = {old: at for at, old in enumerate(new)}
        kept = {name: [column[at] for at in new] for name, column in columns.items()}
        kept["parent"] = [index.get(cast("int", parent), -1) for parent in kept["parent"]]
        return {**about, "number": number, "columns": kept}

    def turns_before(self, number: int) -> int:
        """The number of turns before the new ones of a branch, and of the branches from which it goes on."""
        about = read_stored(self.folder / f"{number:04d}.json")
        turns, at = int(about["turns"]), Place.read(about["at"])
        return turns if at.branch is None else min(turns, self.turns_before(at.branch))

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:04d}.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBranches:
    """The branches from the trees of one run, and the rows that were saved.

    Attributes:
        folder: The folder.
    """

    folder: Path

    def of(self, name: TreeName) -> BranchFolder:
        """The branches from a tree."""
        return BranchFolder(folder=self.folder / str(name))

    def save(self, kind: str, row: Row) -> Path:
        """Append a row to the file of its kind, which a warm-up reads (`warmup.file`); returns the file.

        Raises:
            StoreError: when the disk is full.
        """
        file = self.folder / FILES[kind]
        file.parent.mkdir(parents=True, exist_ok=True)
        append_bytes(file, (json_text(row, ascii_only=False) + "\n").encode(errors="replace"))
        return file


def without_lesson(row: Row, turns_before: int) -> Row:
    """A row of a conversation whose first actions are no examples: their weight is 0."""
    messages = [dict(each) for each in cast("Sequence[Row]", row["messages"])]
    acts = [each for each in messages if each["role"] == "assistant"]
    for each in acts[:turns_before]:
        each["weight"] = 0
    return {**row, "messages": messages}


def preference(chosen: Row, rejected: Row) -> Row:
    """Two conversations of one task as a preference: `{"prompt", "chosen", "rejected", "task"}`.

    Raises:
        StoreError: when they do not differ in an action, or one continues the other.
    """
    sides = [cast("list[dict[str, object]]", each["messages"]) for each in (chosen, rejected)]
    same = next((at for at, (a, b) in enumerate(zip(*sides, strict=False)) if a != b), min(map(len, sides)))
    rests = [side[same:] for side in sides]
    if not all(rests) or any(rest[0]["role"] != "assistant" for rest in rests):
        raise StoreError("got two paths that do not part at an action; need two leaves of one task that part at a turn")
    extra = {name: chosen[name] for name in ("tools", "task") if name in chosen}
    return {"prompt": sides[0][:same], "chosen": rests[0], "rejected": rests[1], **extra}
