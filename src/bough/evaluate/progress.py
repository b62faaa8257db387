"""Stores finished trees, and reports how many there are."""

from collections.abc import Callable
from typing import TypeAlias

from bough.store import PartialTrees
from bough.tree import Task, Tree, counted

OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished tasks and of all tasks."""


class CountedTrees:
    """Stores finished trees and reports the progress; without a folder it stores nothing."""

    def __init__(self, folder: PartialTrees | None, tell: OnProgress | None, of: int) -> None:
        self._folder, self._tell = folder, tell
        self._done, self._of = 0, of

    def get(self, place: int, task: Task) -> Tree | None:
        """See `TreeStore`."""
        tree = None if self._folder is None else self._folder.get(place, task)
        if tree is not None:
            self._count()
        return tree

    def put(self, place: int, tree: Tree) -> None:
        """See `TreeStore`."""
        if self._folder is not None and len(counted(tree)):
            self._folder.put(place, tree)
        self._count()

    def _count(self) -> None:
        self._done += 1
        if self._tell is not None:
            self._tell(self._done, self._of)
