"""Work in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def in_background(work: Callable[[], Result], name: str) -> "Future[Result]":
    """The future result of `work`, which runs in a daemon thread: it does not delay the end of the process.

    Args:
        work: Called in the thread.
        name: The name of the thread.
    """
    outcome = Future[Result]()

    def run() -> None:
        # From here on the future cannot be cancelled, so that the thread can set its result.
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:  # raised by the future
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return outcome


def in_event_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
