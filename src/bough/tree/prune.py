"""Selection of paths of a tree."""

from dataclasses import replace
from typing import Any

import numpy as np

from bough.tree.columns import of_tokens
from bough.tree.stages import Rewarded
from bough.tree.tree import Bools, Ints
from bough.tree.walk import sum_of_subtree


def keep_paths(rewarded: Rewarded, ends: Ints) -> Rewarded:
    """Returns the tree with only the paths to some of its leaves, otherwise unchanged.

    Args:
        rewarded: The tree.
        ends: At least one leaf.

    Raises:
        ValueError: when there is no leaf to keep.
    """
    tree = rewarded.tree
    if len(ends) == 0:
        raise ValueError(f"keep_paths: got no leaves; need at least one (task {tree.task.id})")
    wanted = np.zeros(tree.nodes, dtype=np.float64)
    wanted[ends] = 1.0
    stays: Bools = sum_of_subtree(tree, wanted) > 0
    nodes, tokens = np.flatnonzero(stays), np.repeat(stays, np.diff(tree.span))
    place = np.cumsum(stays) - 1
    columns = {name: column for name, column in tree.columns().items() if name != "span"}
    cut: dict[str, Any] = {name: column[tokens if of_tokens(name) else nodes] for name, column in columns.items()}
    above = tree.parent[nodes]
    cut["parent"] = np.where(above >= 0, place[above], -1).astype(above.dtype)
    lengths = np.diff(tree.span)[nodes]
    cut["span"] = np.concatenate([[0], np.cumsum(lengths)]).astype(tree.span.dtype)
    return Rewarded(
        tree=replace(
            tree,
            info=tuple(tree.info[node] for node in nodes.tolist()),
            appraisals={name: each.take(nodes) for name, each in tree.appraisals.items()},
            seats=tuple(each.take(nodes) for each in tree.seats),
            **cut,
        ),
        channels={name: paid[nodes] for name, paid in rewarded.channels.items()},
        estimates={name: estimate[tokens] for name, estimate in rewarded.estimates.items()},
        end_values={name: value[nodes] for name, value in rewarded.end_values.items()},
    )
