"""Work for a client ends when the client closes its connection."""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import Request

from bough.serve.errors import ApiError

Result = TypeVar("Result")


async def until_disconnect(request: Request, work: Awaitable[Result]) -> Result:
    """The result of `work`, which is cancelled when the client closes the connection.

    Args:
        request: The request; its body is read.
        work: What its answer needs.

    Raises:
        ApiError: 499 when the client closes the connection; and what `work` raises.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ApiError(499, "the client closed the connection")
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
            with contextlib.suppress(BaseException):
                await task


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
