"""Branches at once, or in turn where a budget of the tree decides how far they get."""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from bough.explore.player import Player
from bough.explore.together import together

Result = TypeVar("Result")


async def fairly(player: Player, calls: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of all calls, in their order; they run at once, unless the tree has a budget of its own.

    With a budget for all branches together, it would be left to chance which of them still gets something. So they are
    awaited one after the other, and the same tree grows whatever arrives first.
    """
    limits = player.limits
    if limits.tree_turns is None and limits.tree_tokens is None and limits.tree_calls is None:
        return await together(calls)
    try:
        return [await call for call in calls]
    finally:
        for call in calls:
            call.close()
