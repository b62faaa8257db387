"""Many calls at once, or in turn where a budget of the tree decides how far they get."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from bough.rollout.rollout import Rollout

Result = TypeVar("Result")


async def together(rollout: Rollout, calls: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of all calls, in their order; they run at once, unless the tree has a budget of its own.

    With a budget for all branches together, it would be left to chance which of them still gets something. So they are
    awaited one after the other, and the same tree grows whatever arrives first; other trees grow at the same time in
    any case. When one raises, the others are cancelled.
    """
    if not rollout.budget.bounded:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
        return [task.result() for task in tasks]
    waiting = list(calls)
    try:
        return [await call for call in waiting]
    finally:
        for call in waiting:
            call.close()
