"""The lock of a run directory: one process at a time writes into it."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bough.store.atomic import StoreError, explain_full_disk

LOOKS, LOOK_S = 20, 0.01
"""Tries before a lock counts as held, and the seconds between two."""

_held: set[int] = set()
"""File descriptors of the locks that this process holds."""


@contextmanager
def owned(path: Path) -> Generator[None]:
    """Hold the lock of a run inside a `with` block.

    The lock is the operating system's (`flock`) and ends with the process, even when it is killed. Child processes do
    not share it. The file remains; its content is for the error message only.

    Args:
        path: The lock file, created if missing: process, host and start time as JSON.

    Raises:
        StoreError: when another process holds the lock (names it), or the file system has no locks.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    owner = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": now}).encode()
    with explain_full_disk(path, needed_bytes=len(owner)):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    _held.add(handle)
    try:
        _take(handle, path)
        with explain_full_disk(path, needed_bytes=len(owner)):
            os.ftruncate(handle, 0)
            os.pwrite(handle, owner, 0)
        yield
    finally:
        _release(handle)


def holder(path: Path) -> str:
    """The process that holds the lock, with host and start time; "" when there is none."""
    if not path.is_file():
        return ""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _owner(handle)
    finally:
        os.close(handle)
    return ""


def _take(handle: int, path: Path) -> None:
    for look in range(1, LOOKS + 1):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            # Who asks for the `holder` has the lock for an instant.
            if look == LOOKS:
                held = f"run {path.parent} is in use by {_owner(handle)}"
                raise StoreError(f"{held}; wait for it, or stop it") from error
            time.sleep(LOOK_S)
        except OSError as error:
            raise StoreError(
                f"{path}: got a file system without file locks ({error}); need one with them. Put the run on another "
                "disk (--out)"
            ) from error


def _owner(handle: int) -> str:
    """The process that holds the lock, from the content of the file."""
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
        return f"process {owner['pid']} on host {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        # The owner has the lock and has not yet written its description.
        return "another process"


def _release(handle: int) -> None:
    if handle in _held:
        _held.remove(handle)
        os.close(handle)


def _release_all() -> None:
    for handle in tuple(_held):
        _release(handle)


# A forked process has the same open file, and would hold the lock for as long as it lives.
os.register_at_fork(after_in_child=_release_all)
