"""A server on a socket, in the running event loop."""

import asyncio
import contextlib
import math
import socket
from collections.abc import AsyncGenerator, Generator

import uvicorn

from bough.serve.address import is_loopback, listen
from bough.serve.app import make_app
from bough.serve.body import BODY_BYTES
from bough.serve.connection import Connection
from bough.serve.session import Sessions

CLOSE_S = 5.0
"""How long running answers may take to end when the server closes."""


class _Server(uvicorn.Server):
    """A server that leaves the signals of its process as they are."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@contextlib.asynccontextmanager
async def serve(
    sessions: Sessions,
    listener: socket.socket | None = None,
    *,
    close_s: float = CLOSE_S,
    body_bytes: int = BODY_BYTES,
) -> AsyncGenerator[str]:
    """Serve while a block runs; yields the base URL, up to and with /v1.

    Args:
        sessions: The sessions of the server.
        listener: Its socket, which it closes; None for one on a free port of loopback.
        close_s: How long running answers may take to end when the block ends.
        body_bytes: Most bytes of a request's body.
    """
    with listener or listen() as listening:
        host, port = listening.getsockname()[:2]
        config = uvicorn.Config(
            make_app(sessions, body_bytes=body_bytes, local=is_loopback(host)),
            http=Connection,
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            timeout_graceful_shutdown=math.ceil(close_s),
        )
        server = _Server(config)
        running = asyncio.create_task(server.serve(sockets=[listening]), name="bough-serve")
        try:
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"
        finally:
            server.should_exit = True
            await running
