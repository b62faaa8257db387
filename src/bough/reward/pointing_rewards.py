"""The reward of each action for the point that it chose."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bough.tree import Floats, Kind, Tree
from bough.tree.pointing import Box, Pointing, pointing_in

Target: TypeAlias = tuple[str, str, Box | None]
"""Kind of the correct action, its element, and the element's box."""


def pointing_rewards(tree: Tree, score: Callable[[Pointing], float]) -> Floats:
    """Returns [nodes], the score of each action at its last node; 0 where no correct action is known.

    A path pays for a target once: a later score for the same target counts by what it exceeds the best one before.
    Otherwise a policy could leave a target and return to it for ever. Negative scores count each time.
    """
    paid = np.zeros(tree.nodes, dtype=np.float64)
    best: list[dict[Target, float]] = []
    for node, info in enumerate(tree.info):
        parent = int(tree.parent[node])
        before = best[parent] if parent >= 0 else {}
        best.append(before)
        pointing = pointing_in(info)
        if pointing is None or not pointing.target_kind or tree.kind[parent] != Kind.ACTION:
            continue
        target = (pointing.target_kind, pointing.target, pointing.target_box)
        found, most = score(pointing), before.get(target, 0.0)
        paid[parent] = found if found < 0 else max(0.0, found - most)
        best[node] = {**before, target: max(found, most)}
    return paid
