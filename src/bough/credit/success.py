"""Success of paths."""

from bough.tree import Bools, PathView, Ternary, join


def succeeded(view: PathView) -> Bools:
    """[P] bool: whether the environment marks a path's final state as solved."""
    return join(view.rewarded, "success")[view.leaf] == Ternary.YES
