"""One process of an agent program: a deadline, a memory limit, and the end of its process group."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCH = Path(__file__).with_name("launch.py")

KEEP_BYTES = 2**16
"""Bytes of the end of each output that are kept."""

CLOSE_S = 5.0
"""How long the output may stay open after the end of the process group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """The end of a process.

    Attributes:
        status: Its exit status; negative for a signal; None when the deadline passed.
        out: The end of its standard output.
        err: The end of its standard error.
    """

    status: int | None
    out: str
    err: str


async def run_process(
    words: Sequence[str], environment: Mapping[str, str], *, deadline_s: float, memory_bytes: int
) -> Exit:
    """Run a program in a process group of its own, and end the group with it.

    Args:
        words: The command and its arguments.
        environment: Variables besides those of this process.
        deadline_s: Most seconds; then the group is killed.
        memory_bytes: Most bytes of address space; 0 for no limit.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        str(LAUNCH),
        str(memory_bytes),
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = bytearray(), bytearray()
    reading = asyncio.gather(_keep_end(process.stdout, out), _keep_end(process.stderr, err))
    status: int | None = None
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                status = await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reading, CLOSE_S)
    return Exit(status=status, out=out.decode(errors="replace"), err=err.decode(errors="replace"))


async def _keep_end(stream: asyncio.StreamReader, end: bytearray) -> None:
    """Read a stream to its end into `end`, without its first bytes when it is long."""
    while part := await stream.read(KEEP_BYTES):
        end += part
        del end[: max(0, len(end) - KEEP_BYTES)]
