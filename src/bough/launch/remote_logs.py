"""What processes on a cluster print: each has a file in the run's folder."""

import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

MOST_BYTES = 64 * 2**20
"""Most bytes of a file. Later output of the process is dropped, and the last line is a note of that."""

READ_BYTES = 65536

_folders: list[Path] = []


@contextmanager
def kept_logs(folder: Path) -> Generator[None]:
    """Within, what processes on a cluster print is appended to files of a folder; elsewhere it goes to stderr."""
    _folders.append(folder)
    try:
        yield
    finally:
        _folders.remove(folder)


def keep_log(channel: socket.socket, name: str) -> None:
    """Write what comes from a process until it ends, in a thread.

    Args:
        channel: To the process, which prints into it.
        name: Of the process: "environment workers 0".
    """
    file = _folders[-1] / f"{name.replace(' ', '_')}.log" if _folders else None
    threading.Thread(target=_copy, args=(channel, name, file), name="bough-log", daemon=True).start()


def _copy(channel: socket.socket, name: str, file: Path | None) -> None:
    with channel:
        while chunk := _received(channel):
            # What can't be written to the file is printed: a process whose output is not read stops.
            if file is None or not _appended(file, chunk):
                for line in chunk.decode(errors="replace").splitlines():
                    print(f"[{name}] {line}", file=sys.stderr, flush=True)


def _appended(file: Path, chunk: bytes) -> bool:
    """Append to a file that is not full; returns whether it could be written."""
    try:
        file.parent.mkdir(exist_ok=True)
        with file.open("ab") as log:
            room = MOST_BYTES - log.tell()
            if room > 0:
                log.write(chunk if len(chunk) < room else chunk[:room] + b"\nThe file is full.\n")
    except OSError:
        return False
    return True


def _received(channel: socket.socket) -> bytes:
    try:
        return channel.recv(READ_BYTES)
    except OSError:
        return b""
