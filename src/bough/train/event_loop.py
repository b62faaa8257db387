"""Runs a coroutine to its end, also inside a running event loop, such as a notebook's."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from bough.launch import in_event_loop
from bough.lazy import torch

T = TypeVar("T")

CTRL_C_S = 0.2
"""Seconds between two looks for Ctrl-C: a signal that comes just before a wait for a lock does not end the wait."""


def run_coroutine(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in a new event loop and return its result.

    `asyncio.run` raises inside a running event loop. There `main` runs in a second thread, and the caller blocks until
    it ends. Ctrl-C cancels `main` and raises `KeyboardInterrupt` after its clean-up; a second Ctrl-C raises it at
    once.
    """
    return _run_in_thread(main) if in_event_loop() else asyncio.run(main)


def _run_in_thread(main: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.new_event_loop()
    task, threads = loop.create_task(main), torch.get_num_threads()

    async def ended() -> T:
        return await task

    outcome: Future[T] = Future()

    def work() -> None:
        # PyTorch resets the number of threads in a new thread.
        torch.set_num_threads(threads)
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                value = runner.run(ended())
        except BaseException as error:  # raised to the caller
            outcome.set_exception(error)
        else:
            outcome.set_result(value)

    thread = threading.Thread(target=work, name="bough-loop")
    try:
        thread.start()
        while not outcome.done():
            wait((outcome,), timeout=CTRL_C_S)
        return outcome.result()
    except KeyboardInterrupt:
        with suppress(RuntimeError):  # the loop is closed: `main` has ended
            loop.call_soon_threadsafe(task.cancel)
        while thread.is_alive():
            thread.join(CTRL_C_S)
        raise
