"""The filter of paths that find the required entities in few calls."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from bough.curate.filter import FilterResult
from bough.piece import AtLeast, Between, piece
from bough.tree import Credited, Tree, exclude_leaves, groups, path, path_view, step_info_in


@piece
class EfficientPaths:
    """WebLeaper's filter (arXiv 2510.24697): keeps paths that are accurate and efficient.

    A path is kept when both are above their thresholds:

        seeking rate   required entities that were found / required entities
        efficiency     required entities / calls

        of 4 required, found 4 in 10 calls      1.0    .4      found 1 in 4 calls      .25    1

    The numbers are "found", "required" and "calls" of the path's last `Step.info` that has them, as with `SearchQa`. A
    path without them, or without a required entity, is kept. Other paths are removed from the batch, as by
    `SmallAdvantage`. Groups without remaining paths are dropped under "inefficient". Advantages are computed before, so
    baselines include all paths. For imitation of the kept paths use `credit=Filtered()`.

    The paper's thresholds could not be checked; the defaults are Bough's.

    Try: `bough train grpo --on search env.top=6 env.source.shapes='["set","both","either"]'
    credit=Filtered objective=Imitation filters='[EfficientPaths(rate=0.3,efficiency=0.1)]'`

    Attributes:
        rate: Paths with this seeking rate or less are removed, in [0, 1).
        efficiency: Paths with this efficiency or less are removed, >= 0.
    """

    rate: Annotated[float, Between(0, 1, below=True)] = 0.3
    efficiency: Annotated[float, AtLeast(0)] = 0.1

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        """Drop paths, and the groups that are then empty."""
        thinned = [self._thin(each) for each in credited]
        kept = [
            group
            for group in groups(thinned)
            if any(len(each.excluded_leaves) < path_view([each.rewarded]).paths for each in group)
        ]
        tasks = {group[0].tree.task.id for group in kept}
        left = [each for each in thinned if len(each.excluded_leaves) < path_view([each.rewarded]).paths]
        dropped = len(groups(thinned)) - len(tasks)
        return FilterResult(trees=tuple(left), dropped={"inefficient": dropped})

    def _thin(self, credited: Credited) -> Credited:
        leaf = path_view([credited.rewarded]).leaf
        measured = [seeking(credited.tree, int(each)) for each in leaf]
        removed = [
            found is not None and not (found[0] > self.rate and found[1] > self.efficiency) for found in measured
        ]
        return exclude_leaves(credited, leaf[np.asarray(removed, dtype=np.bool_)])


def seeking(tree: Tree, leaf: int) -> tuple[float, float] | None:
    """Seeking rate and efficiency of the path to a leaf; None without required entities in `Step.info`."""
    for node in map(int, path(tree, leaf)[::-1]):
        counts = step_info_in(tree.info[node])
        if counts.get("required"):
            required = counts["required"]
            return counts["found"] / required, required / max(counts["calls"], 1)
    return None
