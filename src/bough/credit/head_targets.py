"""Regression targets of a value head at states or at actions."""

from typing import Literal, TypeAlias

from bough.credit.valued import valued_turns
from bough.tree import Floats, PathView, mean_over_paths

ValueOf: TypeAlias = Literal["state", "action"]
"""What a head values: the state before a turn, at the turn's first token, or its action, at its last token."""


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
