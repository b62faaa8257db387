"""Reads the output of a process, up to limits of bytes and time, and ends its process group."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

CHUNK = 65536
"""Bytes of one read."""

CLEANUP_S = 10.0
"""Longest wait for the end of a killed process, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOutput:
    """The output of a process, and its end.

    Attributes:
        written: By name of the pipe; at most the limit of bytes each.
        status: The exit status of the process.
        timed_out: Whether it reached the deadline.
        over_limit: Whether it wrote more than the limit.
    """

    written: Mapping[str, bytes]
    status: int
    timed_out: bool
    over_limit: bool


def watch(process: subprocess.Popen[bytes], pipes: Mapping[str, int], *, wall_s: float, limit: int) -> ProcessOutput:
    """Reads the pipes of a process until all are closed and the process has ended.

    At the deadline, and at the limit of bytes, the process group is killed. The process has its own session.

    Args:
        process: The process; nothing else waits for it.
        pipes: Descriptors by name. They are closed at the end.
        wall_s: Deadline in seconds.
        limit: Maximum number of bytes of each pipe.
    """
    written = {name: bytearray() for name in pipes}
    end, timed_out, over_limit = time.monotonic() + wall_s, False, False
    with selectors.DefaultSelector() as selector:
        for name, pipe in pipes.items():
            selector.register(pipe, selectors.EVENT_READ, name)
        try:
            while selector.get_map() and not (timed_out or over_limit):
                for key, _ in selector.select(max(0.0, end - time.monotonic())):
                    data, kept = os.read(key.fd, CHUNK), written[key.data]
                    over_limit = over_limit or len(kept) + len(data) > limit
                    kept += data[: limit - len(kept)]
                    if not data:
                        selector.unregister(key.fd)
                timed_out = not over_limit and time.monotonic() >= end
            if not (timed_out or over_limit):
                timed_out = _still_runs_after(process, end - time.monotonic())
        finally:
            _kill(process)
            _drain(selector)
            for pipe in pipes.values():
                os.close(pipe)
    found = {name: bytes(kept) for name, kept in written.items()}
    return ProcessOutput(written=found, status=process.returncode, timed_out=timed_out, over_limit=over_limit)


def _still_runs_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process still runs after that time."""
    try:
        process.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        return True
    return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the process group, unless the process has ended, and waits for its end."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _drain(selector: selectors.BaseSelector) -> None:
    """Waits until no process holds a pipe; the last one dies after the process that was waited for."""
    end = time.monotonic() + CLEANUP_S
    while selector.get_map() and (left := end - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            if not os.read(key.fd, CHUNK):
                selector.unregister(key.fd)
