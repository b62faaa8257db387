"""Runs a coroutine to its end, also from code that an event loop runs: a cell of a notebook."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def run_coroutine(main: Coroutine[Any, Any, T]) -> T:
    """The result of `main`, which runs in an event loop of its own.

    `asyncio.run` refuses to start below a running event loop. There `main` runs in a second thread, and the caller
    blocks until it has ended. Ctrl-C cancels `main` and raises `KeyboardInterrupt` when `main` has cleaned up; a second
    Ctrl-C raises it at once.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    return _run_in_thread(main)


def _run_in_thread(main: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.new_event_loop()
    task = loop.create_task(main)

    async def ended() -> T:
        return await task

    def work() -> T:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(ended())

    with_loop = ThreadPoolExecutor(1, thread_name_prefix="bough-loop")
    result = with_loop.submit(work)
    try:
        return result.result()
    except KeyboardInterrupt:
        with suppress(RuntimeError):  # the loop is closed: `main` has ended
            loop.call_soon_threadsafe(task.cancel)
        wait([result])
        raise
    finally:
        with_loop.shutdown(wait=False)
