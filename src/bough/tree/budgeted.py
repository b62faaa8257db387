"""Budgets of tokens that a path was given, and the most that keeping one can earn."""

import math

import numpy as np

from bough.tree.tree import Floats, Info, Tree

BUDGET = "budget"
"""The key of a budget in the info of the node that shows it."""


def budget_in(info: Info) -> int | None:
    """Returns the budget that a node shows, in tokens; None without one."""
    found = info.get(BUDGET)
    return found if isinstance(found, int) else None


def path_budgets(tree: Tree) -> Floats:
    """[N] float64: the newest budget that the path to each node shows, in tokens; nan without any."""
    found, parent = [math.nan] * tree.nodes, tree.parent.tolist()
    for node, info in enumerate(tree.info):
        own = budget_in(info)
        found[node] = float(own) if own is not None else found[parent[node]] if node else math.nan
    return np.asarray(found)


def allowance(tokens: Floats, longest_tokens: int, scale: float) -> Floats:
    """[n] float64: scale * cos(pi / 2 * tokens / longest_tokens), of n lengths: `scale` for none, 0 for the longest."""
    return scale * np.cos(np.pi / 2 * tokens / longest_tokens)
