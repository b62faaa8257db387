"""Budgets of tokens that a path was given, and the most that keeping one can earn."""

import math

import numpy as np

from bough.tree.tree import Floats, Tree
from bough.tree.walk import last_where

BUDGET = "budget"
"""The key of a budget in the info of the node that shows it."""


def path_budgets(tree: Tree) -> Floats:
    """[N] float64: the newest budget that the path to each node shows, in tokens; nan without any."""
    shown = [info.get(BUDGET) for info in tree.info]
    own = np.asarray([found if isinstance(found, int) else math.nan for found in shown], dtype=np.float64)
    return own[last_where(tree, ~np.isnan(own))]


def allowance(tokens: Floats, longest_tokens: int, scale: float) -> Floats:
    """[n] float64: scale * cos(pi / 2 * tokens / longest_tokens), of n lengths: `scale` for none, 0 for the longest."""
    return scale * np.cos(np.pi / 2 * tokens / longest_tokens)
