"""Event loops in threads of their own, for coroutines of code that is called synchronously."""

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def start_loop(name: str) -> asyncio.AbstractEventLoop:
    """A new event loop that runs in a daemon thread; a coroutine that calls `sys.exit` does not end it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run, args=(loop,), name=name, daemon=True).start()
    return loop


def synchronous(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; of an async one, a function that waits for its result.

    All async functions of a process run in one event loop, so that they can share a client.
    """
    if not inspect.iscoroutinefunction(function):
        return function

    @functools.wraps(function)
    def wait(*arguments: Any, **named: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(function(*arguments, **named), _loop()).result()

    return wait


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    return start_loop("async functions")


def _run(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        with suppress(SystemExit):
            loop.run_forever()
