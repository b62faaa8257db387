"""Calls code of a user; afterwards the process is as before: the same one, in its folder, with gradients and output."""

import os
import sys
import threading
from contextlib import suppress

from bough.usercode.streams import keep_streams, reopen_streams


class _Depth(threading.local):
    """How many blocks of `exits_raise` the thread is in."""

    count: int = 0


_depth, _end = _Depth(), os._exit


class exits_raise:  # noqa: N801
    """A block in which `os._exit` raises SystemExit: the process would end with the status of a run that is done.

    The block is this thread's. Forks end as they wish.
    """

    def __enter__(self) -> None:
        os._exit = _exit
        _depth.count += 1

    def __exit__(self, *error: object) -> None:
        _depth.count -= 1


class contained(exits_raise):  # noqa: N801
    """A block that calls code of a user.

    Afterwards the working folder and PyTorch's gradient mode are those of before, and standard output and error are
    open. The child of a fork that returns ends, as it would continue its parent's run. `os._exit` raises SystemExit.
    """

    def __init__(self, what: str) -> None:
        """Name what is called, for the message about a fork."""
        self._what = what

    def __enter__(self) -> None:
        self._process, self._folder, self._torch = os.getpid(), _folder(), sys.modules.get("torch")
        self._learns = self._torch is None or self._torch.is_grad_enabled()
        keep_streams()
        super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if os.getpid() != self._process:
            os.write(2, f"{self._what}: the child of a fork returned; do: end it with os._exit\n".encode())
            _end(1)
        reopen_streams()
        if self._folder is not None and _folder() != self._folder:
            with suppress(OSError):
                os.chdir(self._folder)
        if self._torch is not None and self._torch.is_grad_enabled() != self._learns:
            self._torch.set_grad_enabled(self._learns)


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
