"""Conversion of many trees to one set of columns and back, for files and checkpoints."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bough.tree.task import Task
from bough.tree.tree import DTYPES, Info, Tree

OF_TOKENS = ("token", "logprob", "entropy")
"""The columns with one value a token; all others have one value a node."""


def join_trees(trees: Sequence[Tree]) -> dict[str, NDArray[Any]]:
    """Joins the columns of K trees end to end: N nodes and T tokens in all.

    `first_node` [K + 1] has the first node of each tree, `span` [N + 1] the first token of each node, over all trees;
    the other columns are those of `Tree`, `parent` counted from the first node of its tree.
    """
    lengths = [len(tree.token) for tree in trees]
    columns: dict[str, NDArray[Any]] = {"first_node": np.cumsum([0, *(tree.nodes for tree in trees)]).astype(np.int64)}
    for name, dtype in DTYPES.items():
        columns[name] = join_column(dtype, [tree.columns()[name] for tree in trees])
    begins = np.cumsum([0, *lengths])[:-1]
    starts = [tree.span[:-1] + begin for tree, begin in zip(trees, begins, strict=True)]
    columns["span"] = join_column(DTYPES["span"], [*starts, np.array([sum(lengths)])])
    return columns


def join_column(dtype: np.dtype[np.generic], parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Joins the parts end to end, after an empty one, so that zero parts give a column of the right dtype."""
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype)


def rows_of(columns: Mapping[str, NDArray[Any]], name: str, at: int) -> slice:
    """Returns the slice of tree `at` in a column."""
    rows = columns["first_node"][at : at + 2]
    return slice(*(columns["span"][rows] if name in OF_TOKENS else rows).tolist())


def cut_tree(columns: Mapping[str, NDArray[Any]], at: int, task: Task, info: Sequence[Info]) -> Tree:
    """Returns tree `at` of `join_trees`, with the task and info that columns do not hold."""
    first, last = (int(node) for node in columns["first_node"][at : at + 2])
    span = columns["span"][first : last + 1]
    of_tree = {name: columns[name][rows_of(columns, name, at)] for name in DTYPES} | {"span": span - span[0]}
    return Tree(task=task, info=tuple(info), **of_tree)
