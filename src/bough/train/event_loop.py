"""Runs a coroutine to its end, also inside a running event loop, such as a notebook's."""

import asyncio
import signal
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


_mains: "list[asyncio.Task[Any]]" = []
"""What `interrupt` cancels: at most one task, that of `run_coroutine` in the main thread."""


def run_coroutine(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in a new event loop and return its result.

    `asyncio.run` raises inside a running event loop. There `main` runs in a second thread, and the caller blocks until
    it ends. Ctrl-C cancels `main` and raises `KeyboardInterrupt` after its clean-up; a second Ctrl-C raises it at
    once.
    """
    if in_event_loop():
        return _run_in_thread(main)
    results: list[T] = []
    # Not the result of the task: Python 3.11 writes that as text, whole trees, whenever the handler of Ctrl-C is read.
    asyncio.run(_interruptible(main, results))
    return results[0]


def interrupt() -> None:
    """Do as Ctrl-C does, also where a shell that started the process in the background has it ignored.

    Called by the handler of another signal. A `KeyboardInterrupt` raised wherever the event loop happens to be can be
    lost in code that drops exceptions, so the task is cancelled as `asyncio.run` does on Ctrl-C.

    Raises:
        KeyboardInterrupt: when no coroutine runs in this thread, or it is already being cancelled.
    """
    ctrl_c = signal.getsignal(signal.SIGINT)
    if callable(ctrl_c):
        # `asyncio.run` has set one that cancels.
        ctrl_c(signal.SIGINT, None)
    elif not _mains or _mains[0].cancelling():
        raise KeyboardInterrupt
    else:
        _mains[0].cancel()
        _mains[0].get_loop().call_soon_threadsafe(bool)  # wakes the loop


async def _interruptible(main: Coroutine[Any, Any, T], results: list[T]) -> None:
    """Adds the result of `main` to `results`."""
    if threading.current_thread() is not threading.main_thread():
        results.append(await main)
        return
    task = asyncio.current_task()
    assert task is not None
    _mains.append(task)
    try:
        results.append(await main)
    except asyncio.CancelledError:
        # Ctrl-C that is not ignored cancels too, and `asyncio.run` makes it a `KeyboardInterrupt`.
        if task.cancelling() and not callable(signal.getsignal(signal.SIGINT)):
            raise KeyboardInterrupt from None
        raise
    finally:
        _mains.remove(task)


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
