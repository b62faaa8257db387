"""Trees that are kept one by one as they finish, so that a process that is killed loses none."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from bough.store.atomic import StoreError
from bough.store.trees import read_trees, write_trees
from bough.tree import Task, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialTrees:
    """A folder with a file of numbers and one of words for each tree of a list of tasks, named by its place.

    Attributes:
        directory: The folder; made when it is first written to.
    """

    directory: Path

    def get(self, place: int, task: Task) -> Tree | None:
        """The tree of a task at a place in the list; None when there is none that is whole.

        Raises:
            StoreError: when there is one of another task: the list is another.
        """
        path = self._path(place)
        if not path.is_file():
            return None
        try:
            (tree,) = read_trees(path, Tree)
        except (StoreError, ValueError):
            # Cut off while it was written: it is grown again.
            return None
        if tree.task != task:
            raise StoreError(
                f"{path}: got a tree of task {tree.task.id!r}; need one of {task.id!r}: the folder holds trees of "
                "other tasks. Choose another folder, or remove it"
            )
        return tree

    def put(self, place: int, tree: Tree) -> None:
        """Keep a tree.

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
