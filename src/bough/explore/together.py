"""Many calls at once."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def together(calls: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Await all calls at once; their results in the order of the calls. When one raises, the others are cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call) for call in calls]
    return [task.result() for task in tasks]
