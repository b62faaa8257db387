"""Ends code of others that runs in this process when it has used too much processor time."""

import ctypes
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache, partial

CHECK_S = 0.5
"""Seconds between two looks at what runs."""


class OutOfTime(Exception):
    """Raised in the code that has used its processor time."""


class _Call:
    """A call that runs."""

    def __init__(self, seconds: float) -> None:
        self.thread = threading.get_ident()
        self.spent = _clock(self.thread)
        self.end = self.spent() + seconds


_running: set[_Call] = set()
_lock = threading.Lock()


@contextmanager
def processor_limit(seconds: float) -> Generator[None]:
    """Raise `OutOfTime` in this thread, between two instructions of Python, once the code inside has used its time.

    One operation inside C, such as the power of large integers, ends first.

    Args:
        seconds: Processor time of the thread; time on the clock where the system has no clocks of threads.
    """
    _watch()
    call = _Call(seconds)
    with _lock:
        _running.add(call)
    try:
        yield
    finally:
        with _lock:
            _running.discard(call)


def _clock(thread: int) -> Callable[[], float]:
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    return partial(time.clock_gettime, time.pthread_getcpuclockid(thread))


@cache
def _watch() -> None:
    threading.Thread(target=_look, name="processor limits", daemon=True).start()


def _look() -> None:
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    while True:
        time.sleep(CHECK_S)
        with _lock:
            for call in [each for each in _running if each.spent() > each.end]:
                raise_in(ctypes.c_ulong(call.thread), ctypes.py_object(OutOfTime))
                _running.discard(call)


def _forget() -> None:
    """In a forked child, which has neither the thread nor the calls of its parent."""
    _lock.release()
    _running.clear()
    _watch.cache_clear()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_forget)
