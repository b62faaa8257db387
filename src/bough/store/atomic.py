"""Writing so that a reader finds the old file or the new one, never a part: a temporary file, fsync, rename."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the operating system answers when there is no room: the disk, the user's quota, the largest file allowed."""


class StoreError(Exception):
    """Something on disk is not as it should be. The message says what, where, and what to do."""


def write_bytes(path: Path, data: bytes) -> None:
    """Put `data` at `path`, all of it or nothing.

    Raises:
        StoreError: when the disk is full or `path` can't be written; the former file at `path` is intact.
    """
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    with explain_unwritable(path), explain_full_disk(path, needed_bytes=len(data)):
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    sync(path.parent)


def write_json(path: Path, value: object) -> None:
    """Put `value` at `path` as indented JSON, all of it or nothing; raises as `write_bytes` does."""
    write_bytes(path, (json.dumps(value, indent=2) + "\n").encode())


def append_bytes(path: Path, data: bytes) -> None:
    """Put `data` at the end of the file, on disk before the call returns.

    Raises:
        StoreError: when the disk is full or `path` can't be written; the file is as it was before.
    """
    with explain_unwritable(path), explain_full_disk(path, needed_bytes=len(data)):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        end = os.fstat(handle).st_size
        try:
            while data:
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, end)
            raise
        finally:
            os.close(handle)


def sync(path: Path) -> None:
    """Return only when the file or folder (its list of names) would outlive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """The BLAKE2b checksum of a file, in hex: what `b2sum` prints."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, hashlib.blake2b).hexdigest()


@contextmanager
def explain_unwritable(path: Path) -> Generator[None]:
    """Convert an `OSError` raised inside to a `StoreError` with `path` and the reason."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(
            f"cannot write {path}: {reason.lower()}; need a folder that exists and can be written to"
        ) from error


@contextmanager
def explain_full_disk(path: Path, needed_bytes: int | None, advice: Callable[[], str] | None = None) -> Generator[None]:
    """Turn "no room" while writing `path` into a `StoreError` that says how much is needed, and what to do.

    Args:
        path: What is being written; its folder exists.
        needed_bytes: How much room it takes, for the message; None when that is not known.
        advice: Says what to do about it, and what is safe.
    """
    try:
        yield
    except Exception as error:
        if _errno(error) not in FULL:
            raise
        free_bytes = shutil.disk_usage(path.parent).free
        needed = "" if needed_bytes is None else f"{needed_bytes:,} bytes needed, "
        raise StoreError(
            f"disk full while writing {path}: {needed}{free_bytes:,} bytes free there. "
            + (
                advice()
                if advice
                else "Free some space, then try again, or `bough resume` the run; what was there before is untouched."
            )
        ) from error


def _errno(error: Exception) -> int | None:
    """The operating system's error number; safetensors only mentions it in its message."""
    if isinstance(error, OSError):
        return error.errno
    told = re.search(r"\(os error (\d+)\)", str(error))
    return int(told.group(1)) if told else None
