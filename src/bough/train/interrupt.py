"""Ctrl-C and SIGTERM during a run: both end it in the same way, and name the command that continues it."""

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from bough.train.event_loop import interrupt
from bough.train.torchrun import resume_command

_received: list[str] = []
"""The signals that a handler of `interruptible` acted on."""


def interrupted_by() -> str:
    """What interrupted the present run: SIGTERM, else Ctrl-C."""
    return f"{_received[-1]} (a scheduler, or `kill`)" if _received else "Ctrl-C"


@contextmanager
def interruptible(path: Path) -> Generator[None]:
    """Within, Ctrl-C and SIGTERM raise a `KeyboardInterrupt` that names the command which continues the run.

    Schedulers of clusters end a run by SIGTERM, and torchrun does when another process has died. A handler of SIGTERM
    that the user has set stays.

    Args:
        path: The run's directory.
    """
    replaces = _may_set_handlers() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    _received.clear()
    if replaces:
        signal.signal(signal.SIGTERM, _interrupt_in(os.getpid()))
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"go on with `{resume_command(path)}`") from None
    finally:
        if replaces:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _may_set_handlers() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupt_in(run: int) -> Callable[[int, object], None]:
    """A handler that acts as Ctrl-C in one process, and ends its forks."""

    def handle(number: int, frame: object) -> None:
        del frame
        _received.append(signal.Signals(number).name)
        if os.getpid() != run:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        interrupt()

    return handle
