"""MCP servers (modelcontextprotocol.io) as tools of an environment."""

import os
import re
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import field
from typing import Annotated, Any, ClassVar, TypeAlias

from bough.checks import WORKING_FOLDER
from bough.env.tools.mcp_limits import limit_answer
from bough.launch.keeper import kept_command
from bough.piece import Above, piece

GRACE_S = 1.5
"""Seconds that a server has after SIGTERM; the SDK kills its keeper after 2."""


@piece
class McpStdio:
    """A server that is started as a process, and spoken to over its standard input and output.

    Its children end with it, in other sessions too (Linux).

    In `args`, `env` and `folder`, {NAME} is replaced by the field NAME of the task's row, and {state} by the text of
    the episode's state, such as a path. $NAME is replaced by an environment variable.

    Attributes:
        command: The program, such as "uvx" or "python".
        args: Its arguments.
        env: Further environment variables. The server does not inherit those of this process, except PATH, HOME and
            a few more.
        folder: Its working directory; "" for the present one.
        stateless: Whether its calls change nothing: one process then serves all episodes, and states are copied.
            Otherwise each episode starts one.
        deterministic: Whether the same task and calls give the same results on every new server, so that branches can
            be replayed.
        startup_s: Maximum seconds until it has listed its tools.
        deadline_s: Maximum seconds for one call.
        is_process: Whether Bough starts the server.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: str = field(default="", metadata=WORKING_FOLDER)
    stateless: bool = False
    deterministic: bool = False
    startup_s: Annotated[float, Above(0, "more than 0 seconds")] = 30.0
    deadline_s: Annotated[float, Above(0, "more than 0 seconds")] = 30.0
    is_process: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The command with its arguments."""
        return " ".join((self.command, *self.args))

    def connect(self, values: Mapping[str, object]) -> AbstractAsyncContextManager[tuple[Any, ...]]:
        """Starts the process; yields the stream to read, the stream to write, and possibly more.

        Args:
            values: The values of the placeholders.

        Raises:
            FileNotFoundError: when there is no such program.
            NotADirectoryError: when there is no such folder.
            PermissionError: when the program is not executable, or the folder may not be entered.
            ValueError: for a zero byte.
        """
        from mcp import StdioServerParameters, stdio_client

        env = {name: filled(value, values) for name, value in self.env.items()}
        folder = filled(self.folder, values)
        given = [filled(each, values) for each in self.args]
        _check_start(self.command, given, folder, env.get("PATH"))
        command, *args = kept_command([self.command, *given], grace_s=GRACE_S)
        return stdio_client(
            StdioServerParameters(
                command=command,
                args=args,
                env=env or None,
                cwd=folder or None,
                # A strict reader would end at bytes that are no UTF-8, and all calls would be late.
                encoding_error_handler="replace",
            )
        )


@piece
class McpHttp:
    """A server at an address, spoken to over "streamable HTTP". Its process is the user's; its sessions are Bough's.

    In `url` and `headers`, placeholders are replaced as in `McpStdio`, so that a key stays in an environment variable:
    `headers={"Authorization": "Bearer $KEY"}`.

    Attributes:
        url: The address, such as "http://127.0.0.1:8000/mcp".
        headers: Headers of every request.
        stateless: As in `McpStdio`, with sessions in the place of processes.
        deterministic: As in `McpStdio`.
        startup_s: Maximum seconds until it has listed its tools. A server that was there before is tried until then.
        deadline_s: Maximum seconds for one call.
        is_process: Whether Bough starts the server.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    stateless: bool = False
    deterministic: bool = False
    startup_s: Annotated[float, Above(0, "more than 0 seconds")] = 30.0
    deadline_s: Annotated[float, Above(0, "more than 0 seconds")] = 30.0
    is_process: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The address."""
        return self.url

    def connect(self, values: Mapping[str, object]) -> AbstractAsyncContextManager[tuple[Any, ...]]:
        """Opens a connection, see `McpStdio.connect`."""
        headers = {name: filled(value, values) for name, value in self.headers.items()}
        return _http_streams(filled(self.url, values), headers, self.deadline_s)


McpServer: TypeAlias = McpStdio | McpHttp
"""A server, or how to start one."""


def filled(text: str, values: Mapping[str, object]) -> str:
    """A setting with {NAME} replaced by a value and $NAME by an environment variable; unknown ones are kept."""
    known = os.path.expandvars(text)
    return re.sub(r"\{(\w+)\}", lambda found: str(values.get(found[1], found[0])), known)


def _check_start(command: str, args: Sequence[str], folder: str, path: str | None) -> None:
    """Checks that a command can be run; its keeper could only tell it to standard error."""
    if any("\0" in each for each in (command, *args, folder)):
        raise ValueError("got a zero byte in the command, its arguments or its folder; need texts without")
    if folder and not os.path.isdir(folder):
        got = "which is a file" if os.path.exists(folder) else "which does not exist"
        raise NotADirectoryError(f"got the folder {folder!r}, {got}; need a folder: make it, or correct the path")
    if folder and not os.access(folder, os.X_OK):
        raise PermissionError(f"got the folder {folder!r}, which you may not enter; need its permission x")
    place = os.path.join(folder, command) if os.path.dirname(command) else command
    if shutil.which(place, path=path) is None:
        if os.path.dirname(command) and os.path.isfile(place):
            raise PermissionError(
                f"got the command {command!r}, a file that is not executable; need a program: run chmod +x, "
                "or name its interpreter as the command and the file in args"
            )
        got = ", a folder" if os.path.dirname(command) and os.path.isdir(place) else ""
        raise FileNotFoundError(f"got the command {command!r}{got}; need a program on the PATH, or a path to one")


def _http_streams(
    url: str, headers: Mapping[str, str], timeout_s: float
) -> AbstractAsyncContextManager[tuple[Any, ...]]:
    """The streams of a connection over HTTP, with version 1 or 2 of the SDK."""
    from mcp.client import streamable_http

    found = vars(streamable_http)
    if "streamablehttp_client" in found:  # version 1
        return found["streamablehttp_client"](url, headers=dict(headers), timeout=timeout_s)
    return _streams(url, headers, timeout_s)


@asynccontextmanager
async def _streams(url: str, headers: Mapping[str, str], timeout_s: float) -> AsyncGenerator[tuple[Any, ...]]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    timeout, hooks = httpx2.Timeout(timeout_s, read=None), {"response": [limit_answer]}
    sent = {"Accept-Encoding": "identity", **headers}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
