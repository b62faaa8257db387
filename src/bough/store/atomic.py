"""Atomic file writes: a temporary file, fsync, rename, so that readers find the old file or the new one."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from bough.usercode.json_file import json_text

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk, an exceeded quota, and an exceeded file size limit."""


class StoreError(Exception):
    """Invalid or missing data on disk. The message has the path, the problem, and the remedy."""


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` completely or not at all.

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
    """Write `value` to `path` as indented JSON, completely or not at all; raises as `write_bytes` does.

    A number that is not finite is written as null.
    """
    write_bytes(path, (json_text(value, indent=2) + "\n").encode())


def read_stored(path: Path) -> dict[str, Any]:
    """The object of `write_json`.

    Raises:
        StoreError: when the file is no JSON object.
    """
    try:
        return stored_object(path.read_bytes())
    except ValueError as error:
        raise StoreError(f"{path}: got {error}; need the file as the run wrote it") from error


def stored_object(data: bytes) -> dict[str, Any]:
    """The object of a JSON text that Bough wrote.

    Raises:
        ValueError: when it is none; has the reason.
    """
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(f"a JSON {type(found).__name__}, not an object")
    return cast("dict[str, Any]", found)


def append_bytes(path: Path, data: bytes) -> None:
    """Append `data` to the file; it is on disk before the call returns.

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
    """Flush a file or folder (its list of names) to disk, so that it survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """The BLAKE2b checksum of a file, in hex, as printed by `b2sum`."""
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
    """Convert "no space" errors of writing `path` to a `StoreError` with the needed space and the remedy.

    Args:
        path: The file; its folder exists.
        needed_bytes: Needed space, for the message; None when unknown.
        advice: Returns the remedy, and the intact data.
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
    """The operating system's error number; safetensors mentions it only in its message."""
    if isinstance(error, OSError):
        return error.errno
    match = re.search(r"\(os error (\d+)\)", str(error))
    return int(match.group(1)) if match else None
