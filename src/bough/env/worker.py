"""One worker process, seen from the parent: started, called, killed and replaced when it fails."""

import asyncio
import pickle
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from bough.env.env import EnvFault, UserCodeError
from bough.env.serve import ERRORS, LENGTH_BYTES, Answer, Reply, Request, WorkerSetup, framed
from bough.launch import (
    ClusterGone,
    Launched,
    Launcher,
    LaunchError,
    SetupError,
    in_background,
    ready_channel,
    socket_of,
)
from bough.usercode.load import loaded_files

ENTRY = "bough.env.serve:serve"


@dataclass(slots=True, kw_only=True, eq=False)
class Worker:
    """A process that runs an environment. The first call starts it.

    Calls run one at a time, first come first served. When the process hangs or dies, the current call raises the
    fault; the calls in the queue go to the new process.

    Attributes:
        name: Name of the environment, for messages.
        env: The environment, pickled.
        deadline_s: Maximum seconds for one call, counted from when the process is free for it.
        startup_s: Maximum seconds for a new process to be ready.
        launcher: Starts the process.
        index: Of the worker among those of its host.
        notify: Called with a line when the process is replaced because it hung or died.
        calls: Number of calls running or queued.
        replaced: Number of processes that hung or died and were replaced.
        busy_s: Busy seconds over the calls that returned.
    """

    name: str
    env: bytes
    deadline_s: float
    startup_s: float
    launcher: Launcher
    index: int
    notify: Callable[[str], None]
    calls: int = 0
    replaced: int = 0
    busy_s: float = 0.0
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _process: "_Process | None" = None
    _closed: bool = False
    _lock: asyncio.Lock | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def call(self, request: Request) -> Answer:
        """Runs one call.

        Raises:
            EnvFault: when the environment raises, or the process hangs or dies.
            ValueError: the environment's own, about a bad task.
            UserCodeError: a ValueError in the user's code, or the worker cannot unpickle the environment.
            ImportError: when an environment that comes with Bough lacks an extra.
            RuntimeError: when the worker is closed.
            ClusterGone: when no process can start, as the cluster does not answer.
        """
        self.calls += 1
        try:
            async with self._lock_of_loop():
                reply = await self._exchange(request)
        finally:
            self.calls -= 1
        self.busy_s += reply.took_s
        if reply.verdict in ERRORS:
            raise ERRORS[reply.verdict](reply.message)
        return reply.answer

    async def close(self) -> None:
        """Ends the process. A call in flight raises its fault; no process is started."""
        self._closed = True
        if self._process is not None:
            # The channel stays open for the call in flight, which then raises its fault.
            self._process.child.kill()
        async with self._lock_of_loop():
            self._end_process()

    def _lock_of_loop(self) -> asyncio.Lock:
        """Returns the event loop's lock; a lock belongs to one loop, and a worker may outlive several."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._loop is not loop:
            self._lock, self._loop = asyncio.Lock(), loop
        return self._lock

    async def _exchange(self, request: Request) -> Reply:
        about = f"{self.name}.{request.call} ({request.about})"
        if self._closed:
            raise RuntimeError(f"{about}: got a call after close(); need workers that are open")
        try:
            process = await self._ready()
            async with asyncio.timeout(self.deadline_s):
                return await process.exchange(replace(request, number=next(self._numbers)))
        except TimeoutError:
            self._replace()
            fault = EnvFault(f"{about}: no answer within {self.deadline_s:g} s; its worker was replaced")
        except (EOFError, ConnectionError):
            status = self._replace()
            fault = EnvFault(f"{about}: its worker died (exit status {status}) and was replaced")
        except EnvFault as late:
            self._replace()
            fault = late
        except BaseException:
            # A cancelled call, above all: the next call would get its reply, so the process is replaced.
            self._replace()
            raise
        if not self._closed:
            self.notify(str(fault))
        raise fault

    async def _ready(self) -> "_Process":
        """Returns the process once it has unpickled the environment; a new one where it died since the last call."""
        if self._process is None:
            self._process = self._spawn()
        elif not self._process.is_quiet():
            self.notify(f"{self.name}: a worker died between calls (exit status {self._replace()}) and was replaced")
        process = self._process
        if process.channel is not None:
            return process
        setup = pickle.dumps(WorkerSetup(env=self.env, files=loaded_files()))
        try:
            async with asyncio.timeout(self.startup_s):
                await process.prepare(setup, self.startup_s)
        except TimeoutError:
            raise EnvFault(f"{self.name}: no worker was ready within {self.startup_s:g} s; it was replaced") from None
        except ClusterGone:  # a new process would not start either
            raise
        except LaunchError as error:
            raise EnvFault(f"{self.name}: no worker started: {error}") from error
        except SetupError as error:
            raise UserCodeError(
                f"{self.name}: got no environment in the worker; need one that it can unpickle: {error}"
            ) from error
        return process

    def _replace(self) -> int | None:
        status = self._end_process()
        self.replaced += 1
        if not self._closed:
            self._process = self._spawn()
        return status

    def _spawn(self) -> "_Process":
        return _Process(child=self.launcher.launch(ENTRY, self.index))

    def _end_process(self) -> int | None:
        """Ends the process; returns its exit status, minus the signal where one killed it."""
        process, self._process = self._process, None
        return None if process is None else process.kill()


@dataclass(slots=True, kw_only=True, eq=False)
class _Process:
    child: Launched
    channel: socket.socket | None = None

    async def prepare(self, setup: bytes, timeout_s: float) -> None:
        """Send the setup and wait until the process is ready; its channel is then open.

        Raises:
            LaunchError: when it cannot start, or is not ready in time.
            SetupError: when it cannot serve the setup.
        """
        # A thread of its own for each: many may start at a time, and one that hangs must not hold up the others.
        ready = in_background(partial(ready_channel, self.child, setup, timeout_s), "bough-worker-start")
        with await asyncio.wrap_future(ready) as connection:
            self.channel = socket_of(connection)
        self.channel.setblocking(False)

    def is_quiet(self) -> bool:
        """Whether the process is alive and has sent nothing outside a call."""
        if self.channel is None:
            return True
        try:
            self.channel.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        return False

    async def exchange(self, request: Request) -> Reply:
        """Sends a request and waits for the reply of its number.

        Raises:
            EOFError, ConnectionError: when the process died.
        """
        assert self.channel is not None
        await asyncio.get_running_loop().sock_sendall(self.channel, framed(request))
        while True:
            size = int.from_bytes(await self._receive(self.channel, LENGTH_BYTES), "big")
            reply: Reply = pickle.loads(await self._receive(self.channel, size))
            if reply.number == request.number:
                return reply

    async def _receive(self, channel: socket.socket, size: int) -> bytearray:
        loop = asyncio.get_running_loop()
        buffer = bytearray(size)
        rest = memoryview(buffer)
        while rest:
            got = await loop.sock_recv_into(channel, rest)
            if got == 0:
                raise EOFError
            rest = rest[got:]
        return buffer

    def kill(self) -> int | None:
        """Ends the process and its children; returns its exit status."""
        status = self.child.kill()
        if self.channel is not None:
            self.channel.close()
        return status
