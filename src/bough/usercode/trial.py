"""Runs code of others once in a forked process, with a deadline and a limit of memory, before it runs in this one."""

import faulthandler
import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from bough.usercode.origin import shorten

MOST_SHOWN, MOST_BYTES = 500, 1 << 15
"""Characters of an exception that cannot be pickled, and bytes of one that is."""

LENGTH_BYTES = 4

STATUS = Path("/proc/self/statm")


class TrialError(Exception):
    """A trial did not end in time, or its process died; has the reason."""


def try_in_child(function: Callable[[], object], *, deadline_s: float, memory_bytes: int) -> None:
    """Call a function in a fork of this process, which a crash, a hang or a full memory ends alone.

    Args:
        function: Called without arguments; its result is dropped.
        deadline_s: Maximum seconds.
        memory_bytes: Maximum memory beyond that of this process, where the system has such a limit.

    Raises:
        Exception: the one that the function raises.
        TrialError: when it does not end in time, or the process dies.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        _run(function, writes, memory_bytes)
    os.close(writes)
    try:
        message = _received(reads, deadline_s)
        os.kill(child, signal.SIGKILL)
    finally:
        os.close(reads)
        _, status = os.waitpid(child, 0)
    if message is None:
        raise TrialError(f"it did not end within {deadline_s:g} s")
    if not message:
        died = signal.strsignal(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else "without a signal"
        raise TrialError(f"the process died: {died}")
    error = pickle.loads(message)
    if error is not None:
        raise error


def _run(function: Callable[[], object], writes: int, memory_bytes: int) -> NoReturn:
    """The child: it leaves without the exit handlers of its parent."""
    try:
        faulthandler.disable()
        if STATUS.exists():
            most = int(STATUS.read_text().split()[0]) * resource.getpagesize() + memory_bytes
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        os.write(writes, _framed(_error_of(function)))
    finally:
        os._exit(0)


def _error_of(function: Callable[[], object]) -> bytes:
    """The exception of a call, pickled; None without one."""
    try:
        function()
    except BaseException as error:
        with suppress(Exception):  # an exception may have arguments of its own
            message = pickle.dumps(error)
            if str(pickle.loads(message)) == str(error) and len(message) < MOST_BYTES:
                return message
        return pickle.dumps(TrialError(shorten(f"{type(error).__name__}: {error}", MOST_SHOWN)))
    return pickle.dumps(None)


def _framed(message: bytes) -> bytes:
    """A message after its length. The end of the pipe does not mark it: a child of the child may keep the pipe."""
    return len(message).to_bytes(LENGTH_BYTES, "big") + message


def _received(reads: int, deadline_s: float) -> bytes | None:
    """The message of the child, b"" where it dies before its end; None when it has not ended in time."""
    end, message, poll = time.monotonic() + deadline_s, b"", select.poll()
    poll.register(reads)
    while (left := end - time.monotonic()) > 0 and poll.poll(1000 * left):
        part = os.read(reads, 65536)
        message += part
        whole = LENGTH_BYTES + int.from_bytes(message[:LENGTH_BYTES], "big")
        if not part or len(message) >= whole:
            return message[LENGTH_BYTES:] if len(message) >= whole else b""
    return None
