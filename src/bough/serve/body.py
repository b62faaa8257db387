"""Reads the bodies of requests; their type, size and nesting are checked before they are parsed."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request

from bough.serve.disconnect import until_disconnect
from bough.serve.errors import ApiError
from bough.units import MIB

BODY_BYTES = 4 * MIB
"""Most bytes of a body, unless a server has another limit."""

NESTED = 50_000
"""Most arrays and objects of a body: they cost a hundred times the memory and the time of their bytes."""

LARGE_BYTES = 2**16
"""Larger bodies are parsed in a thread."""

REST = 4
"""Parsing a large body stops all other work; a rest of so many times its duration follows."""

AT_ONCE = 32
"""Large bodies that are held at once; further clients wait."""

JSON = "application/json"

Result = TypeVar("Result")


class Bodies:
    """The bodies of the requests of one server.

    Attributes:
        most_bytes: Most bytes of a body.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="bough-serve")
        self._large = asyncio.Semaphore(AT_ONCE)
        self._rested = 0.0

    async def read(self, request: Request, parse: Callable[[bytes], Result]) -> Result:
        """A body as `parse` returns it, which runs in a thread when the body is large.

        Raises:
            ApiError: 415 for a body that is not named JSON, without a key; 413 for one that is too large; 499 when
                the client closes the connection before its body is parsed; and what `parse` raises.
        """
        # Without the server's permission a browser lets a page of another site send text/plain, but no JSON and no key.
        named = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if named != JSON and not {"authorization", "x-api-key"} & {*request.headers}:
            raise ApiError(415, f"got a body of the type {named[:80]!r} without a key; need Content-Type: {JSON}")
        if int(request.headers.get("content-length", 0)) > self.most_bytes:
            raise self._too_large()
        raw, parts = bytearray(), request.stream()
        async for part in parts:
            raw += part
            if len(raw) > LARGE_BYTES:
                break
        else:
            return _parsed(bytes(raw), parse)
        async with self._large:
            async for part in parts:
                raw += part
                if len(raw) > self.most_bytes:
                    raise self._too_large()
            loop, gone = asyncio.get_running_loop(), threading.Event()
            work = loop.run_in_executor(self._threads, self._parsed_in_turn, bytes(raw), parse, gone)
            try:
                return await until_disconnect(request, work)
            finally:
                gone.set()

    def _parsed_in_turn(self, raw: bytes, parse: Callable[[bytes], Result], gone: threading.Event) -> Result:
        time.sleep(max(self._rested - time.monotonic(), 0))
        if gone.is_set():
            raise ApiError(499, "the client closed the connection")
        began = time.monotonic()
        try:
            return _parsed(raw, parse)
        finally:
            ended = time.monotonic()
            self._rested = ended + REST * (ended - began)

    def _too_large(self) -> ApiError:
        return ApiError(413, f"got a body of more than {self.most_bytes} bytes; send less")


def _parsed(raw: bytes, parse: Callable[[bytes], Result]) -> Result:
    nested = raw.count(b"[") + raw.count(b"{")
    if nested > NESTED:
        raise ApiError(413, f"got a body of {nested} opening brackets; need at most {NESTED}; send less")
    return parse(raw)
