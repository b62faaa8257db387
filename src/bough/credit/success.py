"""Success of paths, and value targets at states."""

import numpy as np

from bough.credit.valued import valued_turns
from bough.tree import Bools, Floats, PathView, mean_over_paths


def succeeded(view: PathView) -> Bools:
    """[P] bool: whether the environment marks a path's final state as solved."""
    return np.asarray([entry is True for entry in ends_info(view, "success")], dtype=np.bool_)


def ends_info(view: PathView, name: str) -> list[object]:
    """Returns P values: the entry `name` in the info of each path's leaf, None where it is missing."""
    ends = np.split(view.leaf - view.offset[view.tree], np.searchsorted(view.tree, np.arange(1, len(view.rewarded))))
    return [each.tree.info[int(leaf)].get(name) for each, own in zip(view.rewarded, ends, strict=False) for leaf in own]


def value_targets_of_places(view: PathView, before: Floats) -> Floats:
    """[T]: the target of a head at the first token of each turn; nan elsewhere.

    A search evaluates the critic at the same position: the value of a state, after the policy's forward pass on it.

    Args:
        view: The batch.
        before: [S], the value of the state before each turn.
    """
    valued = valued_turns(view)
    return mean_over_paths(view, valued.token, before[valued.at])
