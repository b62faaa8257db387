"""Success of paths, and value targets at the places on the way."""

import numpy as np

from bough.credit.valued import valued_turns
from bough.tree import Bools, Floats, PathView, mean_over_paths


def succeeded(view: PathView) -> Bools:
    """[P] bool: whether the environment says at the end of a path that its task is solved."""
    return np.asarray([said is True for said in ends_info(view, "success")], dtype=np.bool_)


def ends_info(view: PathView, name: str) -> list[object]:
    """P values: what the info of the leaf of each path says under `name`, None where it says nothing."""
    ends = np.split(view.leaf - view.offset[view.tree], np.searchsorted(view.tree, np.arange(1, len(view.rewarded))))
    return [each.tree.info[int(leaf)].get(name) for each, own in zip(view.rewarded, ends, strict=False) for leaf in own]


def value_targets_of_places(view: PathView, before: Floats) -> Floats:
    """[T]: what a head should have said where each turn was begun, at its first token; nan elsewhere.

    That is what a critic is asked while trees grow: the worth of a place, once the policy has read it.

    Args:
        view: The batch.
        before: [S], the worth of the place that each turn was acted from.
    """
    seen = valued_turns(view)
    return mean_over_paths(view, seen.token, before[seen.at])
