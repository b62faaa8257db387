"""A limit of the messages of MCP servers; the SDK has one for events over HTTP only."""

import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

MOST_BYTES = 8 << 20
"""Most bytes of a message. The model reads less of it by far."""

NEED = f"a message of more than {MOST_BYTES:,} bytes; need a server whose results are shorter"

COMPRESSED = "got a compressed answer; need one as it is, as the request's Accept-Encoding says"

READER = "TextReceiveStream"
"""The name of the reader in the SDK's module, in versions 1 and 2."""

_refuse: ContextVar[Callable[[str], object] | None] = ContextVar("refuse", default=None)


@contextmanager
def limited(refuse: Callable[[str], object]) -> Generator[None]:
    """Limit the lines of a process that is connected inside.

    Args:
        refuse: Called with the reason when a line is too long; it ends the connection.
    """
    _limit_lines()
    token = _refuse.set(refuse)
    try:
        yield
    finally:
        _refuse.reset(token)


@cache
def _limit_lines() -> None:
    """Give the SDK's reader of lines, which keeps a line of any length, a stream that ends at one that is too long."""
    from anyio.streams.text import TextReceiveStream
    from mcp.client import stdio

    class Limited(TextReceiveStream):
        """Counts what came since the last line feed."""

        def __post_init__(self, encoding: str, errors: str) -> None:
            super().__post_init__(encoding, errors)
            self._refuse, self._length = _refuse.get(), 0

        async def receive(self) -> str:
            text = await super().receive()
            _, feed, rest = text.rpartition("\n")
            self._length = len(rest) + (0 if feed else self._length)
            if self._refuse is not None and self._length > MOST_BYTES:
                self._refuse(NEED)
                raise ValueError(NEED)
            return text

    if not hasattr(stdio, READER):
        warnings.warn(f"messages of MCP servers have no limit: this version of mcp has no {READER}", stacklevel=2)
    setattr(stdio, READER, Limited)


async def limit_answer(response: Any) -> None:
    """A hook of httpx2 that limits a whole answer; the SDK limits each event of a stream.

    A compressed answer is refused: a few bytes of it may be gigabytes.
    """
    encoded = response.headers.pop("content-encoding", "identity") != "identity"
    if encoded or not response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _limited_stream(response.stream, COMPRESSED if encoded else "")


def _limited_stream(stream: Any, refused: str) -> Any:
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        """Counts the bytes of an answer."""

        async def __aiter__(self) -> AsyncGenerator[bytes]:
            read = 0
            if refused:
                raise httpx2.StreamError(refused)
            async for part in stream:
                read += len(part)
                if read > MOST_BYTES:
                    raise httpx2.StreamError(f"got {NEED}")
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Limited()
