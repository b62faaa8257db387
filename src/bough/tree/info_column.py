"""Typed columns of what pieces write in `info`, without fields of `Tree`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import numpy as np

from bough.tree.stages import StageError
from bough.tree.tree import Floats, Info, Tree
from bough.tree.walk import last_where

Column = TypeVar("Column")


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoColumn(Generic[Column]):
    """A column that one piece writes in the `info` of nodes and others read: declared where it is used.

    A tree computes it at its first use and keeps it; a tree with another `info` computes it again.

    Examples:
        >>> from bough.tree import Kind, TreeNode, build
        >>> tree = build(TreeNode(parent=-1, kind=Kind.PROMPT, info={"length": 3}))
        >>> InfoColumn(name="length", read=lambda info: [each["length"] for each in info]).of(tree)
        [3]

    Attributes:
        name: What it is read from, for messages.
        read: Computes it from the N infos of a tree. A `KeyError`, `TypeError` or `ValueError` is an unreadable record.
        need: The form that is needed, for messages.
    """

    name: str
    read: Callable[[Sequence[Info]], Column]
    need: str = "the form in which it was written"

    def of(self, tree: Tree) -> Column:
        """The column of a tree.

        Raises:
            StageError: when a record cannot be read.
        """
        columns = tree.derived.columns
        if self not in columns:
            try:
                columns[self] = self.read(tree.info)
            except (KeyError, TypeError, ValueError) as error:
                raise StageError(
                    f"{self.name} of task {tree.task.id}: got {type(error).__name__}: {error}; need {self.need}"
                ) from error
        return cast("Column", columns[self])


@dataclass(frozen=True, slots=True)
class InfoEntry:
    """A value that JSON can write, which one piece writes in the `info` of some nodes and others read.

    Attributes:
        name: Its key in `info`; two declarations with one name are the same value.
    """

    name: str

    def write(self, info: dict[str, object], value: object) -> None:
        """Writes it in the info of a node."""
        info[self.name] = value

    def at(self, info: Info) -> object:
        """The value in the info of a node; None without one."""
        return info.get(self.name)


@dataclass(frozen=True, slots=True)
class InfoNumber:
    """A whole number that one piece writes in the `info` of some nodes and others read as a column.

    Attributes:
        name: Its key in `info`; two declarations with one name are the same column.
    """

    name: str

    def write(self, info: dict[str, object], value: int) -> None:
        """Writes it in the info of a node."""
        info[self.name] = value

    def of(self, tree: Tree) -> Floats:
        """[N] float64: the number at each node; nan without one."""
        found = (info.get(self.name) for info in tree.info)
        return np.asarray([each if isinstance(each, int) else math.nan for each in found], dtype=np.float64)

    def newest(self, tree: Tree) -> Floats:
        """[N] float64: the newest number on the path to each node; nan without any."""
        own = self.of(tree)
        return own[last_where(tree, ~np.isnan(own))]
