"""Regression targets of a value head at states or at actions."""

from bough.credit.valued import valued_turns
from bough.tree import Floats, PathView, ValueOf, mean_over_paths


def head_targets(head: str | None, of: ValueOf, view: PathView, *, before: Floats, after: Floats) -> dict[str, Floats]:
    """[T] by head: the target at the token of each turn where `CriticValue` reads the head; nan elsewhere.

    Args:
        head: The head's name; None for no head.
        of: What it values.
        view: The batch.
        before: [S], the value of the state before each turn.
        after: [S], the value of each turn.
    """
    if head is None:
        return {}
    valued = valued_turns(view, at_end=of == "action")
    value = after if of == "action" else before
    return {head: mean_over_paths(view, valued.token, value[valued.at])}
