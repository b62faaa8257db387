"""Anthropic's messages."""

from functools import partial
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bough.serve.core import ChatTurn, Core
from bough.serve.dialects.messages.answer import message_of
from bough.serve.dialects.messages.blocks import read_conversation
from bough.serve.dialects.messages.events import message_events
from bough.serve.dialects.messages.request import CountRequest, MessagesRequest
from bough.serve.dialects.messages.shapes import NO_THREADS
from bough.serve.errors import ApiError
from bough.serve.request import parse, sampling_of
from bough.serve.restriction import ToolSettings
from bough.tree import Message

Body = TypeVar("Body", bound=CountRequest)


class Messages:
    """The handlers of `POST /v1/messages` and `POST /v1/messages/count_tokens`."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def create(self, request: Request) -> Response:
        """The next message of a conversation."""
        session = self._core.session(request)
        body, messages, settings = await self._core.bodies.read(request, partial(_read, MessagesRequest))
        model = session.model(body.model)
        if body.thread is not None:
            raise ApiError(
                400,
                "thread: got a conversation that the server would hold; send all its messages, as the tool runner of "
                "Anthropic's client does after this error",
                code=NO_THREADS,
                param="thread",
            )
        sampling = sampling_of(
            session.sampling, temperature=body.temperature, top_p=body.top_p, max_tokens=body.max_tokens
        )
        turn = ChatTurn(
            messages=messages,
            tools=settings.offered,
            sampling=sampling,
            stops=tuple(body.stop_sequences or ()),
            parallel_calls=body.parallel_calls,
            restriction=settings.restriction,
        )
        (choice,) = await self._core.answer(request, session, turn)
        message = message_of(model, choice)
        if body.stream:
            return StreamingResponse(message_events(message), media_type="text/event-stream")
        return JSONResponse(message)

    async def count(self, request: Request) -> Response:
        """The number of tokens of a prompt."""
        session = self._core.session(request)
        body, messages, settings = await self._core.bodies.read(request, partial(_read, CountRequest))
        session.model(body.model)
        return JSONResponse({"input_tokens": len(await self._core.prompt(session, messages, settings.offered))})


def _read(kind: type[Body], raw: bytes) -> tuple[Body, tuple[Message, ...], ToolSettings]:
    """The body of a request, its messages and its tools."""
    body = parse(kind, raw)
    return body, read_conversation(body), body.tool_settings
