"""A server on a socket, in the running event loop."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncGenerator, Generator

import uvicorn

from bough.serve.app import make_app
from bough.serve.session import Sessions

LOOPBACK = "127.0.0.1"

BACKLOG = 2048
"""Connections that wait for the event loop."""

CLOSE_S = 5.0
"""How long open requests may take to end when the server closes."""


class _Server(uvicorn.Server):
    """A server that leaves the signals of its process as they are."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(host: str, key: str) -> None:
    """Refuse an address that other machines reach without a key.

    Raises:
        ValueError: when there is no key.
    """
    if not key and not is_loopback(host):
        raise ValueError(
            f"serve: got the address {host}, which other machines reach, without a key; need a key (--key KEY or the "
            f"environment variable BOUGH_SERVE_KEY), or the address {LOOPBACK}"
        )


@contextlib.asynccontextmanager
async def serve(sessions: Sessions, *, host: str = LOOPBACK, port: int = 0, key: str = "") -> AsyncGenerator[str]:
    """Serve while a block runs; yields the base URL, up to and with /v1.

    Args:
        sessions: The sessions of the server.
        host: The address.
        port: 0 takes a free one.
        key: The server's key, "" without one; only its presence counts here.

    Raises:
        ValueError: when other machines reach the address and there is no key.
        OSError: when the port is taken, or the address is not this machine's.
    """
    check_address(host, key)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        config = uvicorn.Config(
            make_app(sessions),
            lifespan="off",
            log_level="error",
            access_log=False,
            timeout_graceful_shutdown=int(CLOSE_S),
        )
        server = _Server(config)
        running = asyncio.create_task(server.serve(sockets=[listener]), name="bough-serve")
        shown = f"[{host}]" if ":" in host else host
        try:
            yield f"http://{shown}:{listener.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            await running
