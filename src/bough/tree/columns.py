"""Conversion of many trees to one set of columns and back, for files and checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bough.tree.allowed_sets import read_token_sets, token_sets_record
from bough.tree.appraisal import Appraisal
from bough.tree.counts import RolloutCounts
from bough.tree.node_values import NodeValues
from bough.tree.seat import Seat
from bough.tree.task import Task
from bough.tree.tree import COLUMNS, DTYPES, UNKNOWN_VALUES, Tree


def draft_columns(nodes: Sequence[NodeValues]) -> dict[str, list[float]]:
    """Returns the columns that N nodes may lack."""
    return {
        name: [unknown if (value := getattr(node, name)) is None else value for node in nodes]
        for name, unknown in UNKNOWN_VALUES.items()
    }


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


def of_tokens(name: str) -> bool:
    """Whether a column has one value a token; all others that are cut have one a node."""
    return name in COLUMNS and COLUMNS[name].per == "token"


def rows_of(columns: Mapping[str, NDArray[Any]], name: str, at: int) -> slice:
    """Returns the slice of tree `at` in a column."""
    rows = columns["first_node"][at : at + 2]
    return slice(*(columns["span"][rows] if of_tokens(name) else rows).tolist())


def tree_record(tree: Tree) -> dict[str, object]:
    """Returns what the columns of a tree do not hold, as JSON data: task, counts, info, appraisals, seats, sets."""
    record: dict[str, object] = {
        "task": tree.task.record(),
        "counts": asdict(tree.counts),
        "replayed": tree.replayed,
        "info": tree.info,
    }
    appraisals = {name: each.record() for name, each in tree.appraisals.items()}
    record |= {"appraisals": appraisals} if appraisals else {}
    record |= {"allowed_sets": token_sets_record(tree.allowed_sets)} if len(tree.allowed_sets) else {}
    return record | ({"seats": [each.record() for each in tree.seats]} if tree.seats else {})


def cut_tree(columns: Mapping[str, NDArray[Any]], at: int, record: Mapping[str, Any]) -> Tree:
    """Returns tree `at` of `join_trees`, with the result of its `tree_record`."""
    first, last = (int(node) for node in columns["first_node"][at : at + 2])
    span = columns["span"][first : last + 1]
    of_tree: dict[str, Any] = {name: columns[name][rows_of(columns, name, at)] for name in DTYPES} | {
        "span": span - span[0]
    }
    return Tree(
        task=Task.read(record["task"]),
        counts=RolloutCounts(**record["counts"]),
        replayed=record["replayed"],
        appraisals={name: Appraisal.read(each, last - first) for name, each in record.get("appraisals", {}).items()},
        seats=tuple(Seat.read(each, last - first) for each in record.get("seats", ())),
        allowed_sets=read_token_sets(record.get("allowed_sets", ())),
        info=tuple(record["info"]),
        **of_tree,
    )
