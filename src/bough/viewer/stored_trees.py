"""The trees of a run directory, read once per file."""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from bough.store import StoreError, read_trees
from bough.tree import Credited, Rewarded, Tree, count_path_tokens

Kept = TypeVar("Kept")

FILE = re.compile(r"step_(\d+)\.safetensors")
"""The name of a file of trees of a run; the number is the step."""

FILES = 16
"""Files of trees that stay in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeName:
    """The name of a tree in a run: `12.3` is tree 3 of step 12.

    Attributes:
        step: The step.
        index: Its place in the file of the step.
    """

    step: int
    index: int

    def __str__(self) -> str:
        return f"{self.step}.{self.index}"

    @classmethod
    def read(cls, text: str) -> "TreeName":
        """The name that a text has.

        Raises:
            StoreError: when it is none.
        """
        match = re.fullmatch(r"(\d{1,9})\.(\d{1,9})", text)
        if match is None:
            raise StoreError(f"got the tree {text!r:.60}; need STEP.INDEX, such as 12.3: tree 3 of step 12")
        return cls(step=int(match[1]), index=int(match[2]))


@dataclass(slots=True)
class PerFile(Generic[Kept]):
    """What a function makes of each file, until the file changes.

    Attributes:
        make: Makes it of a file and the name of a variant, such as a credit rule; "" for none.
        most: Results that stay in memory, the last used ones; None for all.
    """

    make: Callable[[Path, str], Kept]
    most: int | None = None
    _kept: "OrderedDict[tuple[Path, str], tuple[tuple[int, int], Kept]]" = field(
        default_factory=OrderedDict[tuple[Path, str], tuple[tuple[int, int], Kept]], init=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def get(self, file: Path, variant: str = "") -> Kept:
        """The result of a file.

        Raises:
            StoreError: when there is no such file, or it is damaged.
        """
        try:
            stat = file.stat()
        except OSError as error:
            raise StoreError(f"{file}: there is no such file of trees") from error
        stamp = (stat.st_mtime_ns, stat.st_size)
        with self._lock:
            if (found := self._kept.get((file, variant))) is not None and found[0] == stamp:
                self._kept.move_to_end((file, variant))
                return found[1]
        made = self.make(file, variant)
        with self._lock:
            self._kept[file, variant] = (stamp, made)
            while self.most is not None and len(self._kept) > self.most:
                self._kept.popitem(last=False)
        return made


def step_files(directory: Path) -> Iterator[tuple[int, Path]]:
    """The steps of a run with stored trees, ascending, each with its file."""
    folder = directory / "trees"
    if folder.is_dir():
        named = [(match, file) for file in folder.iterdir() if (match := FILE.fullmatch(file.name))]
        yield from sorted((int(match[1]), file) for match, file in named)


def count_lines(file: Path) -> int:
    """The number of lines of a file, one a tree; 0 without the file."""
    if not file.is_file():
        return 0
    with file.open("rb") as lines:
        return sum(1 for _ in lines)


def read_file(file: Path) -> list[Credited]:
    """The trees of a file; those without credit have no advantages, those without rewards the environment's.

    Raises:
        StoreError: when it is damaged, or has trees of several seats.
    """
    return [_credited(file, each) for each in read_trees(file)]


def _credited(file: Path, stored: Tree | Rewarded | Credited) -> Credited:
    if isinstance(stored, Credited):
        return stored
    if isinstance(stored, Tree):
        if stored.seats:
            raise StoreError(f"{file}: got trees of several seats at once; need those of a run's training steps")
        stored = Rewarded(tree=stored, channels={"env": stored.env_reward})
    return Credited(rewarded=stored, path_advantage=np.zeros(count_path_tokens(stored.tree)))


def tree_in(trees: list[Credited], name: TreeName) -> Credited:
    """A tree of the file of its step.

    Raises:
        StoreError: when there are not as many.
    """
    if name.index >= len(trees):
        raise StoreError(f"got tree {name}; step {name.step} has {len(trees)} trees, the first is {name.step}.0")
    return trees[name.index]
