"""The reward of each action for the point that it chose."""

from collections.abc import Callable

import numpy as np

from bough.screen import POINTINGS
from bough.screen.pointings import Pointings
from bough.tree import Floats, Kind, StageError, Tree, describe, is_column
from bough.tree.repeats import largest_above


def pointing_rewards(tree: Tree, score: Callable[[Pointings], Floats]) -> Floats:
    """[N] float64: the score of each action at its last node; 0 where no correct action is known.

    A path pays for a target once: a later score for the same target counts by what it exceeds the best one before.
    Otherwise a policy could leave a target and return to it for ever. Negative scores count each time.

    Args:
        tree: The tree.
        score: Computes the scores [M] of the M pointings of a tree.

    Raises:
        StageError: when a record of a pointing cannot be read, or `score` returns something else than [M] numbers.
    """
    pointings = POINTINGS.of(tree)
    scores = score(pointings)
    if not is_column(scores, len(pointings.node)):
        raise StageError(
            f"{getattr(score, '__qualname__', score)}: got {describe(scores)}; need an array of "
            f"{len(pointings.node)} numbers, one for each pointing (task {tree.task.id})"
        )
    paid = np.zeros(tree.nodes)
    action = tree.parent[pointings.node]
    known = np.flatnonzero((pointings.target_kind != "") & (action >= 0) & (tree.kind[action] == Kind.ACTION))
    found = scores[known]
    before = largest_above(tree, pointings.node[known], pointings.target[known], found)
    paid[action[known]] = np.where(found < 0, found, np.maximum(0.0, found - before))
    return paid
