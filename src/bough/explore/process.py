"""One process of an agent program: a deadline, a memory limit, and the end of all that it starts."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bough.launch.keeper import kept_command

KEEP_BYTES = 2**16
"""Bytes of the end of each output that are kept."""

CLOSE_S = 5.0
"""How long the output may stay open after the end of the program."""

KEEPER_S = 10.0
"""How long the keeper of a program may take to end all its processes; see `bough.launch.keeper`."""


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
    """Run a program, and end all processes that it has started with it.

    Args:
        words: The command and its arguments.
        environment: Variables besides those of this process.
        deadline_s: Most seconds; then it is killed.
        memory_bytes: Most bytes of address space; 0 for no limit.
    """
    process = await asyncio.create_subprocess_exec(
        *kept_command(words, memory_bytes=memory_bytes),
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
        await end_keeper(process.pid, asyncio.ensure_future(process.wait()))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(reading, CLOSE_S)
    return Exit(status=status, out=out.decode(errors="replace"), err=err.decode(errors="replace"))


async def end_keeper(pid: int, ended: asyncio.Future[int]) -> None:
    """End a program by its keeper, and wait for the keeper's end; one that does not end is killed."""
    for number, wait_s in ((signal.SIGTERM, KEEPER_S), (signal.SIGKILL, None)):
        if ended.done():
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
        await asyncio.wait([ended], timeout=wait_s)


async def _keep_end(stream: asyncio.StreamReader, end: bytearray) -> None:
    """Read a stream to its end into `end`, without its first bytes when it is long."""
    while part := await stream.read(KEEP_BYTES):
        end += part
        del end[: max(0, len(end) - KEEP_BYTES)]
