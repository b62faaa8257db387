"""Concurrent calls of one rollout, sequential where the tree has a budget."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from bough.rollout.rollout import Rollout

Result = TypeVar("Result")


async def together(rollout: Rollout, calls: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of all calls, in their order; they run concurrently unless the tree has a budget of its own.

    With a budget of the tree, concurrent calls would compete for it in a random order. So they are awaited one after
    the other, and the tree does not depend on the order of arrival. Other trees still grow concurrently. When a call
    raises, the others are cancelled.
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
