"""The reward of each action for the point that it chose."""

from collections.abc import Callable

import numpy as np

from bough.tree import Floats, Kind, Tree
from bough.tree.pointing import Pointing, pointing_in


def pointing_rewards(tree: Tree, score: Callable[[Pointing], float]) -> Floats:
    """Returns [nodes], the score of each action at its last node; 0 where no correct action is known."""
    paid = np.zeros(tree.nodes, dtype=np.float64)
    for node, info in enumerate(tree.info):
        parent = int(tree.parent[node])
        pointing = pointing_in(info)
        if pointing is not None and pointing.target_kind and tree.kind[parent] == Kind.ACTION:
            paid[parent] = score(pointing)
    return paid
