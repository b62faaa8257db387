"""One worker process, seen from the parent: started, called, killed and replaced when it fails."""

import asyncio
import pickle
import socket
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from bough.env.env import EnvFault, UserCodeError
from bough.env.hosts.serve import ERRORS, LENGTH_BYTES, Answer, Reply, Request, WorkerSetup, framed
from bough.launch import (
    ClusterGone,
    Launched,
    Launcher,
    LaunchError,
    SetupError,
    in_background,
    memory_note,
    ready_channel,
    socket_of,
)
from bough.usercode.load import loaded_files

ENTRY = "bough.env.hosts.serve:serve"


@dataclass(slots=True, kw_only=True, eq=False)
class Worker:
    """A process that runs an environment. The first call starts it.

    Calls run one at a time, first come first served; those of an environment that waits run up to
    `max_concurrent_calls` at a time. When the process hangs or dies, the current calls raise the fault; the calls in
    the queue go to the new process. Of an environment that waits, a late call raises its fault, and the process is
    replaced if it has answered no call meanwhile.

    Attributes:
        name: Name of the environment, for messages.
        env: The environment, pickled.
        deadline_s: Maximum seconds for one call, counted from when the process is free for it.
        startup_s: Maximum seconds for a new process to be ready.
        launcher: Starts the process.
        index: Of the worker among those of its host.
        notify: Called with a line when the process is replaced because it hung or died.
        max_concurrent_calls: Maximum number of calls at a time; 1 for an environment that does not wait.
        ended: The numbers of requests whose states have no copy left in this process.
        calls: Number of calls running or queued.
        replaced: Number of processes that hung or died and were replaced.
        busy_s: Busy seconds of its processes.
    """

    name: str
    env: bytes
    deadline_s: float
    startup_s: float
    launcher: Launcher
    index: int
    notify: Callable[[str], None]
    max_concurrent_calls: int = 1
    ended: deque[int] = field(default_factory=deque[int])
    calls: int = 0
    replaced: int = 0
    busy_s: float = 0.0
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _process: "_Process | None" = None
    _closed: bool = False
    _gate: "_Gate | None" = None

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
            async with self._gate_of_loop().calls:
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
            # A call in flight then raises its fault, and a process that is starting ends.
            self._process.child.kill()
        async with self._gate_of_loop().sending:
            self._end_process()

    def _gate_of_loop(self) -> "_Gate":
        """Returns the event loop's gate; a gate belongs to one loop, and a worker may outlive several."""
        loop = asyncio.get_running_loop()
        if self._gate is None or self._gate.loop is not loop:
            self._gate = _Gate(loop=loop, calls=asyncio.Semaphore(self.max_concurrent_calls), sending=asyncio.Lock())
        return self._gate

    async def _exchange(self, request: Request) -> Reply:
        about = f"{self.name}.{request.call} ({request.about})"
        loop, process, replies = asyncio.get_running_loop(), None, 0
        if self._closed:
            raise RuntimeError(f"{about}: got a call after close(); need workers that are open")
        try:
            async with self._gate_of_loop().sending:
                process = await self._ready()
                replies, late_s = process.replies, loop.time() + self.deadline_s
                async with asyncio.timeout_at(late_s):
                    reply = await process.send(self._numbered(request))
            async with asyncio.timeout_at(late_s):
                return await reply
        except TimeoutError:
            assert process is not None
            fault = EnvFault(f"{about}: no answer within {self.deadline_s:g} s")
            if self.max_concurrent_calls == 1 or process.broken or process.replies == replies:
                self._replace(process)
                fault = EnvFault(f"{fault}; its worker was replaced")
        except (EOFError, ConnectionError):
            assert process is not None
            status = self._replace(process)
            fault = EnvFault(f"{about}: its worker died (exit status {status}) and was replaced{_note(status)}")
        except EnvFault as late:
            self._replace(self._process)
            fault = late
        except BaseException:
            # A cancelled call, above all: the next call would get its reply, so the process is replaced.
            if process is None or self.max_concurrent_calls == 1 or process.broken:
                self._replace(process or self._process)
            raise
        if not self._closed:
            self.notify(str(fault))
        raise fault

    def _numbered(self, request: Request) -> Request:
        """A request with a number, and those of the states that have ended."""
        ended = tuple(self.ended.popleft() for _ in range(len(self.ended)))
        return replace(request, number=next(self._numbers), ended=ended)

    async def _ready(self) -> "_Process":
        """Returns the process once it has unpickled the environment; a new one where it died since the last call."""
        if self._process is None:
            self._process = self._spawn()
        elif not self._process.is_quiet():
            status = self._replace(self._process)
            died = f"a worker died between calls (exit status {status}) and was replaced"
            self.notify(f"{self.name}: {died}{_note(status)}")
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

    def _replace(self, process: "_Process | None") -> int | None:
        """Ends a process, and starts another one unless that was done before; returns its exit status."""
        if self._process is process:
            self._end_process()
            self.replaced += 1
            if not self._closed:
                self._process = self._spawn()
        return None if process is None else process.status

    def _spawn(self) -> "_Process":
        return _Process(child=self.launcher.launch(ENTRY, self.index))

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()


def _note(status: int | None) -> str:
    return memory_note(status, "lower `workers`, or make the environment's states smaller")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gate:
    """Bounds the calls of an event loop: those at a time, and one that is sent."""

    loop: asyncio.AbstractEventLoop
    calls: asyncio.Semaphore
    sending: asyncio.Lock


@dataclass(slots=True, kw_only=True, eq=False)
class _Process:
    """A process and its channel.

    Attributes:
        child: The process.
        channel: Carries requests and replies; None before it is ready.
        pending: The futures of replies, by number.
        replies: Number of replies.
        broken: Whether the channel ended, or carries a part of a message.
        status: The exit status, minus the signal where one killed it; None before its end.
    """

    child: Launched
    channel: socket.socket | None = None
    pending: dict[int, asyncio.Future[Reply]] = field(default_factory=dict[int, asyncio.Future[Reply]])
    replies: int = 0
    broken: bool = False
    status: int | None = None
    _reading: asyncio.Task[None] | None = None

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
        if self.channel is None or self._is_reading:
            return not self.broken
        try:
            self.channel.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return not self.broken
        except ConnectionError:
            return False
        return False

    async def send(self, request: Request) -> asyncio.Future[Reply]:
        """Sends a request; returns the future of its reply, which raises EOFError when the process has died.

        Raises:
            ConnectionError: when the process died.
        """
        assert self.channel is not None
        loop = asyncio.get_running_loop()
        reply = self.pending[request.number] = loop.create_future()
        was_broken, self.broken = self.broken, True
        await loop.sock_sendall(self.channel, framed(request))
        self.broken = was_broken
        if not self._is_reading:
            self._reading = asyncio.create_task(self._read(self.channel), name="bough-worker-replies")
        return reply

    @property
    def _is_reading(self) -> bool:
        return self._reading is not None and not self._reading.done()

    async def _read(self, channel: socket.socket) -> None:
        """Hands out replies until none is pending."""
        try:
            while self.pending:
                size = int.from_bytes(await self._receive(channel, LENGTH_BYTES), "big")
                reply: Reply = pickle.loads(await self._receive(channel, size))
                self.replies += 1
                waiting = self.pending.pop(reply.number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except BaseException as error:
            self.broken = True
            for waiting in self.pending.values():
                if not waiting.done():
                    waiting.set_exception(error if isinstance(error, Exception) else EOFError())
            self.pending.clear()
            if not isinstance(error, Exception):
                raise

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

    def kill(self) -> None:
        """Ends the process and its children."""
        self.status, channel = self.child.kill(), self.channel
        if channel is None:
            return
        if self._reading is not None and not self._reading.done():
            # The event loop lets go of the channel first.
            self._reading.add_done_callback(lambda _: channel.close())
            self._reading.cancel()
        else:
            channel.close()
