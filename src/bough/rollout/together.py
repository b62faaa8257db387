"""Concurrent calls of one rollout, in an order where the tree has a budget."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from bough.rollout.budget import CallUsage, Usage
from bough.rollout.rollout import Rollout

Result = TypeVar("Result")


async def together(
    rollout: Rollout, calls: Iterable[Coroutine[Any, Any, Result]], most: Sequence[Usage | None] | None = None
) -> list[Result]:
    """The results of all calls, in their order; they run concurrently. When a call raises, the others are cancelled.

    Where the tree has a budget of its own, the results are those of calls that run one after the other, and only what
    may exceed the budget waits for the calls ahead (`Budget`).

    Args:
        rollout: The rollout.
        calls: The calls.
        most: The worst-case cost of each call, such as `Rollout.max_cost`; None where unknown, which lets the calls
            behind it wait for its end.

    Raises:
        BaseExceptionGroup: the errors of the calls; with a budget the first error by itself.
    """
    budget, waiting = rollout.budget, list(calls)
    if not budget.bounded:
        return await _results(waiting)

    async def charged(call: Coroutine[Any, Any, Result], usage: CallUsage) -> Result:
        async with budget.within(usage):
            return await call

    try:
        with budget.concurrent([None] * len(waiting) if most is None else most) as usages:
            return await _results([charged(*each) for each in zip(waiting, usages, strict=True)])
    except BaseExceptionGroup as errors:
        error = errors.exceptions[0]
    finally:
        for call in waiting:
            call.close()
    # Raised outside of `except`, it keeps its own cause and context.
    raise error


async def _results(calls: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call) for call in calls]
    return [task.result() for task in tasks]
