"""Calls code of a user so that the process afterwards is as before: the same one, in the same folder, with gradients."""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress


class _Depth(threading.local):
    """How many blocks of `exits_raise` the thread is in."""

    count: int = 0


_depth, _end = _Depth(), os._exit


@contextmanager
def exits_raise() -> Generator[None]:
    """In this block `os._exit` raises SystemExit: the process would end with the status of a run that is done.

    The block is this thread's. Forks end as they wish.
    """
    os._exit = _exit
    _depth.count += 1
    try:
        yield
    finally:
        _depth.count -= 1


@contextmanager
def contained(what: str) -> Generator[None]:
    """A block that calls code of a user.

    Afterwards the working folder and PyTorch's gradient mode are those of before. The child of a fork that returns ends,
    as it would continue its parent's run. `os._exit` raises SystemExit.

    Args:
        what: What is called, for the message about a fork.
    """
    process, folder, torch = os.getpid(), _folder(), sys.modules.get("torch")
    learns = torch is None or torch.is_grad_enabled()
    try:
        with exits_raise():
            yield
    finally:
        if os.getpid() != process:
            os.write(2, f"{what}: the child of a fork returned; do: end it with os._exit\n".encode())
            _end(1)
        if folder is not None and _folder() != folder:
            with suppress(OSError):
                os.chdir(folder)
        if torch is not None and torch.is_grad_enabled() != learns:
            torch.set_grad_enabled(learns)


def _exit(status: int) -> None:
    if not _depth.count:
        _end(status)
    raise SystemExit(f"os._exit({status})")


def _folder() -> str | None:
    """The working folder; None for one that was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _forked() -> None:
    _depth.count = 0


os.register_at_fork(after_in_child=_forked)
