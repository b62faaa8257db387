"""Success of paths, and value targets at states."""

from bough.credit.valued import valued_turns
from bough.tree import Bools, Floats, PathView, Ternary, join, mean_over_paths


def succeeded(view: PathView) -> Bools:
    """[P] bool: whether the environment marks a path's final state as solved."""
    return join(view.rewarded, "success")[view.leaf] == Ternary.YES


def value_targets_of_places(view: PathView, before: Floats) -> Floats:
    """[T]: the target of a head at the first token of each turn; nan elsewhere.

    A search evaluates the critic at the same position: the value of a state, after the policy's forward pass on it.

    Args:
        view: The batch.
        before: [S], the value of the state before each turn.
    """
    valued = valued_turns(view)
    return mean_over_paths(view, valued.token, before[valued.at])
