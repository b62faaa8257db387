"""One server on loopback for the episodes of all trees that grow in an event loop."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Generator
from weakref import WeakKeyDictionary

from bough.explore.forked import ForkedAgents, forked_agents
from bough.serve import Session
from bough.version import install


class ProgramServer:
    """The sessions of running episodes, by key.

    Attributes:
        url: The base URL, up to and with /v1; "" before the start.
        slots: Limits the number of processes.
        users: Number of trees that use the server.
    """

    def __init__(self, processes: int) -> None:
        self.url = ""
        self.slots = asyncio.Semaphore(processes)
        self.users = 0
        self.starting = asyncio.Lock()
        self.closing = contextlib.AsyncExitStack()
        self._sessions: dict[str, Session] = {}
        self._agents: dict[tuple[str, str], ForkedAgents] = {}

    async def agents(self, file: str, name: str) -> ForkedAgents:
        """The processes of a function, which end with the server."""
        async with self.starting:
            if (file, name) not in self._agents:
                self._agents[file, name] = await self.closing.enter_async_context(forked_agents(file, name))
        return self._agents[file, name]

    def find(self, key: str) -> Session | None:
        """See `bough.serve.Sessions`."""
        return self._sessions.get(key)

    @contextlib.contextmanager
    def open(self, session: Session) -> Generator[str]:
        """A key for a session while a block runs."""
        key = f"bough-{secrets.token_hex(16)}"
        self._sessions[key] = session
        try:
            yield key
        finally:
            del self._sessions[key]


SERVERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, ProgramServer]] = WeakKeyDictionary()
"""The servers of each event loop, by their number of processes."""


@contextlib.asynccontextmanager
async def shared_server(processes: int) -> AsyncGenerator[ProgramServer]:
    """The event loop's server, which starts with its first user and closes with its last.

    Raises:
        ImportError: when the extra `serve` is not installed.
    """
    try:
        from bough.serve.server import serve
    except ImportError as error:
        raise ImportError(
            f"Program needs a server, which can't be imported ({error}); do: {install('serve')}"
        ) from error
    servers = SERVERS.setdefault(asyncio.get_running_loop(), {})
    server = servers.setdefault(processes, ProgramServer(processes))
    server.users += 1
    try:
        async with server.starting:
            if not server.url:
                server.url = await server.closing.enter_async_context(serve(server))
        yield server
    finally:
        server.users -= 1
        if not server.users:
            servers.pop(processes, None)
            await server.closing.aclose()
