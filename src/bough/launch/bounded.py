"""Calls in a child process, which is killed at their deadline."""

import atexit
import os
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from bough.launch.placement import Launched, ThisMachine, end_with_parent

ENTRY = "bough.launch.bounded:answer_calls"

START_S = 60.0
"""Maximum seconds for the start of the child process, and for the import of a function."""

Request = tuple[str, tuple[object, ...] | None]
"""A function, "module:name", and its arguments; None to import it only."""


class CallEnded(RuntimeError):
    """A call has no result: it was late, or its process ended.

    Attributes:
        late: Whether it was late.
    """

    def __init__(self, message: str, *, late: bool) -> None:
        super().__init__(message)
        self.late = late


def bounded_call(function: str, *arguments: object, seconds: float) -> Any:
    """The result of a function that runs in a child process of this one.

    All calls of a process share one child, one call at a time. It keeps the state of its modules from call to call,
    until a call is late or ends it; the next call starts another.

    Args:
        function: "module:name", of a module that can be imported.
        arguments: Its arguments, pickled.
        seconds: Maximum seconds, without the start of the child and the import of the module.

    Raises:
        CallEnded: when the call is late, or the process ends.
        ValueError: the function's own.
    """
    return _child_of(os.getpid()).call(function, arguments, seconds)


@cache
def _child_of(process: int) -> "_Child":
    """The child of a process; a fork of the process has one of its own."""
    child = _Child(process)
    atexit.register(child.end)
    return child


class _Child:
    def __init__(self, owner: int) -> None:
        self._owner = owner
        self._lock = threading.Lock()
        self._imported: set[str] = set()
        self._launched: Launched | None = None
        self._channel: Connection | None = None

    def call(self, function: str, arguments: tuple[object, ...], seconds: float) -> Any:
        with self._lock:
            try:
                if function not in self._imported:
                    self._exchange((function, None), START_S)
                    self._imported.add(function)
                result, error = self._exchange((function, arguments), seconds)
            except BaseException:
                # After an interrupt, too: the next call must not read the result of this one.
                self.end()
                raise
        if error is not None:
            raise ValueError(error)
        return result

    def end(self) -> None:
        """End the process; the process of another owner is left."""
        if self._launched is not None and self._owner == os.getpid():
            self._launched.kill()
        if self._channel is not None:
            self._channel.close()
        self._launched = self._channel = None
        self._imported.clear()

    def _exchange(self, request: Request, seconds: float) -> tuple[Any, str | None]:
        channel = self._channel or self._start()
        try:
            channel.send(request)
            if not channel.poll(seconds):
                raise CallEnded(f"it took more than {seconds:g} seconds", late=True)
            return channel.recv()
        except (EOFError, ConnectionError) as error:
            raise CallEnded("its process ended", late=False) from error

    def _start(self) -> Connection:
        self._launched = ThisMachine().reserve("bounded calls", 1).launch(ENTRY, 0)
        self._channel = Connection(self._launched.connect(START_S).detach())
        return self._channel


def answer_calls(channel: int) -> None:
    """In the child: answer calls until the channel closes. An exception other than ValueError ends the process."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    with Connection(channel) as connection, suppress(EOFError, ConnectionError):
        while True:
            name, arguments = connection.recv()
            function = _function(name)
            try:
                answer = (None if arguments is None else function(*arguments), None)
            except ValueError as error:
                answer = (None, str(error))
            except Exception:
                traceback.print_exc()
                return
            connection.send(answer)


@cache
def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)
