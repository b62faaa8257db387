"""OpenAI's responses."""

from dataclasses import replace
from weakref import WeakKeyDictionary

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bough.serve.choice import TokenTexts
from bough.serve.conversation import Conversations
from bough.serve.core import ChatTurn, Core
from bough.serve.dialects.ordered import ordered
from bough.serve.dialects.responses.answer import new_id, response_of
from bough.serve.dialects.responses.events import response_events
from bough.serve.dialects.responses.items import read_items
from bough.serve.dialects.responses.request import ResponsesRequest
from bough.serve.dialects.responses.stored import StoredResponses
from bough.serve.errors import ApiError
from bough.serve.request import parse, sampling_of
from bough.serve.restriction import ToolSettings
from bough.serve.session import Session
from bough.tree import Message


class Responses:
    """The handler of `POST /v1/responses`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._stored: WeakKeyDictionary[Conversations, StoredResponses] = WeakKeyDictionary()

    async def create(self, request: Request) -> Response:
        """The next response of a conversation."""
        session = self._core.session(request)
        (body, settings), (messages, places) = await self._core.bodies.read(request, _read)
        model, stored = session.model(body.model), self._of(session)
        conversation = _after(stored, body.previous_response_id, messages, places)
        system = (Message(role="system", content=body.instructions),) if body.instructions else ()
        sampling = sampling_of(
            session.sampling,
            temperature=body.temperature,
            top_p=body.top_p,
            max_tokens=body.max_output_tokens,
            top_probs=body.top_logprobs or 0,
        )
        turn = ChatTurn(
            messages=(*system, *conversation),
            tools=settings.offered,
            sampling=sampling,
            logprobs=body.logprobs,
            parallel_calls=body.parallel_tool_calls is not False,
            restriction=settings.restriction,
        )
        (choice,) = await self._core.answer(request, session, turn)
        name, texts = new_id("resp"), TokenTexts(session.conversations.renderer)
        response = response_of(texts, name, model, choice, body, logprobs=body.logprobs)
        if body.store is not False:
            stored.keep(name, (*conversation, replace(choice.said, tokens=())))
        if body.stream:
            return StreamingResponse(response_events(response), media_type="text/event-stream")
        return JSONResponse(response)

    def _of(self, session: Session) -> StoredResponses:
        return self._stored.setdefault(session.conversations, StoredResponses())


def _read(raw: bytes) -> tuple[tuple[ResponsesRequest, ToolSettings], tuple[list[Message], list[int]]]:
    """The body of a request and its tools; its messages, and their items."""
    body = parse(ResponsesRequest, raw)
    return (body, body.tool_settings), read_items(body.input)


def _after(
    stored: StoredResponses, name: str | None, messages: list[Message], places: list[int]
) -> tuple[Message, ...]:
    """The conversation of an earlier response, and the messages after it.

    Raises:
        ApiError: 404 for a response that is not kept; 400 for calls and results that do not match.
    """
    before = stored.find(name) if name else ()
    if before is None:
        raise ApiError(
            404,
            f"previous_response_id: got {name!r:.100}, which this server does not keep, or no longer; send the "
            "conversation as input",
            code="previous_response_not_found",
            param="previous_response_id",
        )

    def place(index: int) -> str:
        return "previous_response_id" if index < len(before) else f"input[{places[index - len(before)]}]"

    return ordered((*before, *messages), place)
