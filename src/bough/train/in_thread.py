"""Work that is not cancelled: in a thread beside the event loop, and in the loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import torch

from bough.rollout import Deadlines

Result = TypeVar("Result")

WORK_S = 24 * 3600.0
"""Deadline of the work, in seconds."""


async def in_thread(work: Callable[[], Result], deadlines: Deadlines, *, owner: str, thing: str) -> Result:
    """The result of `work` in a thread. A thread cannot be stopped: when cancelled, this waits for its end.

    Args:
        work: Called in the thread.
        deadlines: The run's register of pending awaits.
        owner: Which part of the run waits.
        thing: What it waits for.
    """
    threads = torch.get_num_threads()

    def run() -> Result:
        # PyTorch resets the number of threads in a new thread.
        torch.set_num_threads(threads)
        return work()

    with deadlines.during(owner=owner, thing=thing, deadline_s=WORK_S):
        ended = asyncio.get_running_loop().run_in_executor(None, run)
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            await asyncio.wait([ended])
            if not ended.cancelled():
                ended.exception()
            raise


async def uncancelled(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`; when cancelled, this waits for its end.

    Raises:
        CancelledError: when cancelled, after the end; an error of `work` comes first.
    """
    ended = asyncio.create_task(work)
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        await asyncio.wait([ended])
        ended.result()
        raise
