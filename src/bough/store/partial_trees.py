"""Stores finished trees one by one, so that a killed process loses none of them."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from bough.store.atomic import StoreError
from bough.store.trees import read_trees, write_trees
from bough.tree import Task, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialTrees:
    """A folder with two files for each tree of a list of tasks, columns and texts, named by the task's index.

    Attributes:
        directory: The folder; created with the first tree.
    """

    directory: Path

    def get(self, place: int, task: Task) -> Tree | None:
        """The tree of the task at index `place`; None without a complete one.

        Raises:
            StoreError: when the stored tree is of another task, because the list has changed.
        """
        path = self._path(place)
        if not path.is_file():
            return None
        try:
            (tree,) = read_trees(path, Tree)
        except (StoreError, ValueError):
            # Incomplete because of a kill during the write: it is grown again.
            return None
        if tree.task != task:
            raise StoreError(
                f"{path}: got a tree of task {tree.task.id!r}; need one of {task.id!r}: the folder holds trees of "
                "other tasks. Choose another folder, or remove it"
            )
        return tree

    def put(self, place: int, tree: Tree) -> None:
        """Store a tree.

        Raises:
            StoreError: when the disk is full.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        write_trees(self._path(place), [tree])

    def clear(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _path(self, place: int) -> Path:
        return self.directory / f"tree_{place:06d}.safetensors"
