"""Episodes of an agent's function in forked processes: the imports of its file run once."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from bough.explore.process import CLOSE_S, KEEP_BYTES, KEEPER_S, Exit, end_keeper
from bough.launch import keeper

SCRIPT = Path(__file__).with_name("fork_agents.py")

LINE_BYTES = 2**20
"""Longest answer of the script."""


class ForkedAgents:
    """The processes of one function; `fork_agents.py` is their parent."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = count()
        self._pids: dict[int, asyncio.Future[int]] = {}
        self._statuses: dict[int, asyncio.Future[int]] = {}
        self._reading = asyncio.create_task(self._read())

    async def run(self, environment: Mapping[str, str], *, deadline_s: float, memory_bytes: int) -> Exit:
        """Run an episode, and end all processes that it has started with it; see `run_process`."""
        number, loop = next(self._numbers), asyncio.get_running_loop()
        pid = self._pids[number] = loop.create_future()
        status = self._statuses[number] = loop.create_future()
        with TemporaryDirectory(prefix="bough-") as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            request = {"id": number, "memory": memory_bytes, "environment": dict(environment)}
            ended: int | None = None
            try:
                if self._reading.done():
                    return Exit(status=-signal.SIGKILL, out="", err="the parent of the agent's processes died")
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(request | {"out": str(out), "err": str(err)}).encode() + b"\n")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(deadline_s):
                        ended = await asyncio.shield(status)
            finally:
                if pid.done():
                    await end_keeper(pid.result(), status)
                del self._pids[number], self._statuses[number]
            return Exit(status=ended, out=_end(out), err=_end(err))

    async def close(self) -> None:
        """End all processes."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), KEEPER_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        # A process that was not found may hold the output open.
        await asyncio.wait([self._reading], timeout=CLOSE_S)
        self._reading.cancel()

    async def _read(self) -> None:
        """Set the futures of the answers; a script that died ends its processes as killed."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            answer = json.loads(line)
            if "pid" in answer:
                self._pids[answer["id"]].set_result(answer["pid"])
            elif not self._statuses[answer["id"]].done():
                self._statuses[answer["id"]].set_result(answer["status"])
        for status in self._statuses.values():
            if not status.done():
                status.set_result(-signal.SIGKILL)


@contextlib.asynccontextmanager
async def forked_agents(file: str, name: str) -> AsyncGenerator[ForkedAgents]:
    """The processes of a function while a block runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        str(SCRIPT),
        str(Path(keeper.__file__).parent),
        file,
        name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_BYTES,
        start_new_session=True,
    )
    agents = ForkedAgents(process)
    try:
        yield agents
    finally:
        await agents.close()


def _end(file: Path) -> str:
    """The end of an output."""
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - KEEP_BYTES))
        return stream.read().decode(errors="replace")
