"""Concurrent questions."""

from asyncio import TaskGroup
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def each(calls: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of concurrent calls, in their order."""
    async with TaskGroup() as group:
        tasks = [group.create_task(call) for call in calls]
    return [task.result() for task in tasks]
