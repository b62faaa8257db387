"""Sessions with MCP servers: started with a deadline, restarted after a fault, ended with their episode."""

import asyncio
import json
import threading
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from bough.env.env import EnvFault
from bough.env.tools.mcp import McpServer
from bough.env.tools.mcp_limits import limited
from bough.env.tools.mcp_messages import first_problem, quiet_sdk, result_text, show_noise
from bough.tree import Tool
from bough.usercode.loop import start_loop
from bough.usercode.origin import describe
from bough.version import install

INVALID_PARAMS = -32602
"""JSON-RPC's code for wrong arguments: the model reads that error. Any other code is a fault."""

END_S = 10.0
"""Maximum seconds for the end of a session; the SDK kills a process that does not end by itself after 2 to 4 s."""

UNLIMITED = ("validate_tool_result", "_validate_tool_result")
"""Methods of the SDK's session that check a result by the server's schema, whose patterns may take years."""

MOST_TOOLS = 1024
"""Maximum number of tools of a server."""

CHANGED = "notifications/tools/list_changed"

RETRY_S = 0.2
"""Seconds between tries to reach a server again."""

Result = TypeVar("Result")


class McpSession:
    """A session with a server, in the thread of all sessions. It ends when it is closed or collected.

    Args:
        server: The server.
        values: The values of its placeholders.
        again: Whether it had a session before: one with an address may be starting again, and is tried for `startup_s`.

    Attributes:
        tools: The tools that the server lists.
        alive: Whether the session takes calls.

    Raises:
        EnvFault: when the server does not start, or lists no tools in time.
        ValueError: when the name of a tool is not valid.
        ImportError: without the package mcp.
    """

    def __init__(self, server: McpServer, values: Mapping[str, object], *, again: bool = False) -> None:
        if find_spec("mcp") is None:
            raise ImportError(f"got an MCP server without the package mcp; need it: {install('mcp')}")
        self._server = server
        self._connection = _Connection(server=server, values=values, retries=again and not server.is_process)
        self._finalizer = weakref.finalize(self, _end, self._connection)
        try:
            self.tools = _tools(_wait(self._connection.start(), server.startup_s + END_S))
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether calls can be made."""
        return self._finalizer.alive and not self._connection.ended

    def call(self, name: str, arguments: Mapping[str, object]) -> tuple[str, bool]:
        """Calls a tool; returns the text of its result, and whether the server marked it as an error.

        Raises:
            EnvFault: when the server died, hung or broke the protocol. The session is then closed.
        """
        try:
            return _wait(self._connection.call(name, dict(arguments)), self._server.deadline_s + END_S)
        except EnvFault:
            self.close()
            raise

    def close(self) -> None:
        """Ends the session, and the process of a server that it started. Safe to call twice."""
        self._finalizer()


class McpSessions:
    """The sessions of an environment: one for each stateless server, and those of the episodes.

    Args:
        servers: The servers.
    """

    def __init__(self, servers: Sequence[McpServer]) -> None:
        self.servers = tuple(servers)
        self._shared: dict[int, McpSession] = {}
        self._open: weakref.WeakSet[McpSession] = weakref.WeakSet()
        self._listed: dict[int, tuple[Tool, ...]] = {}
        self._unused: dict[int, tuple[Mapping[str, object], McpSession]] = {}
        # Several episodes may start at a time, each in a thread.
        self._lock = threading.RLock()

    def tools(self, own: dict[int, McpSession], values: Mapping[str, object]) -> tuple[Tool, ...]:
        """The tools of all servers. The first time it starts the servers; the next episode of the task uses them.

        Raises:
            ValueError: when a server lists no tools, or one whose name is not valid.
        """
        with self._lock:
            for number in range(len(self.servers)):
                if number not in self._listed:
                    self._list(number, own, values)
        return tuple(tool for number in sorted(self._listed) for tool in self._listed[number])

    def _list(self, number: int, own: dict[int, McpSession], values: Mapping[str, object]) -> None:
        session = self._session(number, own, values)
        if not session.tools:
            session.close()
            raise ValueError(f"MCP server {self.servers[number].name}: lists no tools; need at least one")
        self._listed[number] = session.tools
        if number in own:
            self._unused[number] = (values, own.pop(number))

    def call(
        self, own: dict[int, McpSession], values: Mapping[str, object], name: str, arguments: Mapping[str, object]
    ) -> tuple[str, bool]:
        """Calls a tool of any server, see `McpSession.call`.

        Args:
            own: The episode's sessions; a session is added by the first call that needs it.
            values: The values of the placeholders.
            name: The tool.
            arguments: Its arguments.
        """
        number = next(each for each, tools in self._listed.items() if name in {tool.name for tool in tools})
        return self._session(number, own, values).call(name, arguments)

    def close(self) -> None:
        """Ends all sessions."""
        with self._lock:
            opened = [*self._open]
        for session in opened:
            session.close()
        self._shared.clear()
        self._unused.clear()

    def _session(self, number: int, own: dict[int, McpSession], values: Mapping[str, object]) -> McpSession:
        server = self.servers[number]
        if not server.stateless:
            return self._opened(number, own, values)
        with self._lock:
            return self._opened(number, self._shared, values)

    def _opened(self, number: int, sessions: dict[int, McpSession], values: Mapping[str, object]) -> McpSession:
        """The session of a server among some, which is started where it is missing."""
        server = self.servers[number]
        # A shared server that died is restarted; one with an episode's state is not, since the state is lost.
        if number not in sessions or (server.stateless and not sessions[number].alive):
            started_for, unused = self._unused.pop(number, (None, None))
            if unused is not None and (started_for != values or not unused.alive):
                unused.close()
                unused = None
            session = unused or McpSession(server, values, again=number in self._listed)
            try:
                check_same(server, self._listed.get(number, session.tools), session.tools)
            except EnvFault:
                session.close()
                raise
            sessions[number] = session
            with self._lock:
                self._open.add(session)
        return sessions[number]


@dataclass(slots=True, kw_only=True, eq=False)
class _Connection:
    """A connection, all of whose coroutines run in the thread of the sessions.

    One task opens and closes it, because the SDK's scopes must be left by the task that entered them.
    """

    server: McpServer
    values: Mapping[str, object]
    ended: bool = False
    fault: str = ""
    task: "asyncio.Task[None] | None" = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    session: Any = None
    hung: bool = False
    retries: bool = False
    tools: Sequence[Mapping[str, Any]] = ()
    changed: bool = False
    noise: int = 0
    refused: str = ""

    async def start(self) -> Sequence[Mapping[str, Any]]:
        fault: EnvFault | None = None
        try:
            async with asyncio.timeout(self.server.startup_s):
                while True:
                    try:
                        return await self._open()
                    except EnvFault as error:
                        if not self.retries:
                            raise
                        fault = error
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            raise fault or EnvFault(
                f"MCP server {self.server.name}: got no list of tools within {self.server.startup_s:g} s; need a "
                "server that starts sooner, or a larger startup_s"
            ) from None

    async def _open(self) -> Sequence[Mapping[str, Any]]:
        ready: asyncio.Future[Sequence[Mapping[str, Any]]] = asyncio.get_running_loop().create_future()
        self.ended = False
        self.task = asyncio.create_task(self._live(ready))
        return await asyncio.shield(ready)

    async def _live(self, ready: "asyncio.Future[Sequence[Mapping[str, Any]]]") -> None:
        try:
            from mcp import ClientSession

            quiet_sdk()
            async with AsyncExitStack() as stack:
                with limited(self._refuse):
                    read, write, *_ = await stack.enter_async_context(self.server.connect(self.values))
                client = ClientSession(read, write, message_handler=cast("Any", self._receive))
                session: Any = await stack.enter_async_context(client)
                for name in UNLIMITED:
                    setattr(session, name, _skip)
                await session.initialize()
                self.tools = await _list(session)
                self.session = session
                ready.set_result(self.tools)
                await self.stop.wait()
        except (Exception, asyncio.CancelledError, BaseExceptionGroup) as broken:
            reason = self.refused or _reason(broken)
            self.fault = f": {reason}"
            if not ready.done():
                ready.set_exception(EnvFault(f"MCP server {self.server.name} did not start: {reason}"))
                ready.exception()  # Read here too: nothing waits for it after the deadline.
        finally:
            self.ended = True

    async def call(self, name: str, arguments: dict[str, object]) -> tuple[str, bool]:
        where = f"MCP server {self.server.name}, tool {name}"
        if self.ended or self.task is None:
            raise EnvFault(f"{where}: the server's session has ended{self.fault}")
        # Lone surrogates can't be sent.
        plain = json.loads(json.dumps(arguments, ensure_ascii=False).encode(errors="replace"))
        work = asyncio.ensure_future(self._call(name, plain))
        # Version 1 of the SDK lets a call wait after the connection broke.
        await asyncio.wait({work, self.task}, timeout=self.server.deadline_s, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            self.hung = not self.ended
            late = f"no result within {self.server.deadline_s:g} s"
            late += f"; {self.noise} lines of its output are no messages" if self.noise else ""
            raise EnvFault(f"{where}: the server's session has ended{self.fault}" if self.ended else f"{where}: {late}")
        try:
            result = _record(work.result())
        except Exception as broken:
            if _code(broken) == INVALID_PARAMS:
                return str(broken), True
            raise EnvFault(f"{where}: {self.refused or _reason(broken)}") from None
        return result_text(result), bool(result.get("isError"))

    async def _call(self, name: str, arguments: dict[str, object]) -> Any:
        """The SDK's result of a call, after a check of the tools where a notification announces others."""
        if self.changed:
            self.changed = False
            check_same(self.server, _tools(self.tools), _tools(await _list(self.session)))
        return await self.session.call_tool(name, arguments)

    def _refuse(self, reason: str) -> None:
        """Ends the connection: the SDK reads on until the process ends."""
        self.refused = f"got {reason}"
        assert self.task is not None
        self.task.cancel()

    async def _receive(self, message: Any) -> None:
        """Takes what the server sends besides results: notifications, and what is no message."""
        if isinstance(message, Exception):
            self.noise += 1
            show_noise(self.server.name, message)
        # In version 1 a notification is the root of a model.
        self.changed = self.changed or getattr(getattr(message, "root", message), "method", "") == CHANGED

    async def end(self) -> None:
        self.stop.set()
        if self.task is None:
            return
        await asyncio.wait({self.task}, timeout=0 if self.session is None or self.hung else END_S)
        if not self.task.done():  # still starting, or a server that does not respond
            self.task.cancel()
            await asyncio.wait({self.task}, timeout=END_S)


async def _list(session: Any) -> list[Mapping[str, Any]]:
    """All tools of a server as MCP's records; it may list them in pages."""
    found: list[Mapping[str, Any]] = []
    cursor: str | None = None
    while True:
        page = _record(await (session.list_tools(**_page(cursor)) if cursor else session.list_tools()))
        found += page["tools"]
        if len(found) > MOST_TOOLS:
            raise ValueError(f"got more than {MOST_TOOLS} tools; need fewer: a prompt lists them all")
        cursor = page.get("nextCursor")
        if not cursor:
            return found


def _tools(records: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    return tuple(
        Tool(name=each["name"], description=each.get("description") or "", schema=each["inputSchema"])
        for each in records
    )


def check_same(server: McpServer, first: Sequence[Tool], now: Sequence[Tool]) -> None:
    """Checks that a server lists the tools that it listed first: the model reads these.

    Raises:
        EnvFault: when it lists others.
    """
    if {each.name: each for each in first} != {each.name: each for each in now}:
        before, after = (", ".join(sorted(each.name for each in tools)) or "none" for tools in (first, now))
        raise EnvFault(
            f"MCP server {server.name}: its list of tools changed ({before}; now {after}); need the same tools, "
            "descriptions and schemas in all episodes"
        )


async def _skip(*_: object) -> None:
    """Stands for a check of the SDK that has no deadline."""


def _page(cursor: str) -> dict[str, Any]:
    from mcp.types import PaginatedRequestParams

    return {"params": PaginatedRequestParams(cursor=cursor)}


def _record(result: Any) -> dict[str, Any]:
    """A result of the SDK as the protocol's JSON: the fields have other names in versions 1 and 2."""
    return cast("dict[str, Any]", result.model_dump(by_alias=True, mode="json"))


def _code(error: Exception) -> int | None:
    """The JSON-RPC code of an error of the SDK."""
    from mcp.shared import exceptions

    # Its name is McpError in version 1.
    known = vars(exceptions).get("MCPError") or vars(exceptions)["McpError"]
    return cast("Any", error).error.code if isinstance(error, known) else None


def _reason(error: BaseException) -> str:
    """The first exception inside groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return first_problem(describe(error))


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all sessions, in a thread of its own: environments are called synchronously."""
    return start_loop("mcp")


def _wait(work: Coroutine[Any, Any, Result], seconds: float) -> Result:
    try:
        return asyncio.run_coroutine_threadsafe(work, _loop()).result(seconds)
    except TimeoutError:
        raise EnvFault(f"MCP: nothing came back within {seconds:g} s") from None


def _end(connection: _Connection) -> None:
    with suppress(EnvFault):
        _wait(connection.end(), 3 * END_S)
