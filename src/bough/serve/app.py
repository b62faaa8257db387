"""The application: OpenAI's protocol over the sessions of a server."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bough.engine import EngineFault, FinishReason, Sampling
from bough.serve import answer
from bough.serve.address import names_loopback
from bough.serve.answer import Choice, TokenTexts
from bough.serve.body import BODY_BYTES, Bodies
from bough.serve.errors import ApiError
from bough.serve.gone import until_gone
from bough.serve.request import CompletionRequest, SamplingFields, parse, read_chat, read_outcome
from bough.serve.session import Prompt, Session, Sessions, check_logprobs
from bough.serve.stop import cut_at
from bough.serve.texts import check_texts, written
from bough.tree import Message, Tool
from bough.usercode.origin import shorten

Result = TypeVar("Result")

ANY_MODEL = "policy"
"""The listed name of a model that has every name."""


def make_app(sessions: Sessions, *, body_bytes: int = BODY_BYTES, local: bool = False) -> Starlette:
    """The application that answers requests.

    Paths: `POST /v1/chat/completions`, `POST /v1/completions`, `GET /v1/models`, `GET /v1/models/{name}`,
    `POST /v1/outcome` (for sessions with a report), `GET /health`. Errors have OpenAI's form.

    Args:
        sessions: The sessions of the server.
        body_bytes: Most bytes of a request's body.
        local: Whether it is served on loopback: requests to other hosts are refused.
    """
    api = _Api(sessions, Bodies(body_bytes), local=local)
    return Starlette(
        routes=[
            Route("/v1/chat/completions", api.chat, methods=["POST"]),
            Route("/v1/completions", api.completions, methods=["POST"]),
            Route("/v1/models", api.models, methods=["GET"]),
            Route("/v1/models/{name:path}", api.model, methods=["GET"]),
            Route("/v1/outcome", api.outcome, methods=["POST"]),
            Route("/health", _health, methods=["GET"]),
        ],
        exception_handlers={
            ApiError: _refuse,
            EngineFault: _broken,
            ClientDisconnect: _gone,
            HTTPException: _no_such_path,
            Exception: _broken,
        },
    )


class _Api:
    """The handlers of one server."""

    def __init__(self, sessions: Sessions, bodies: Bodies, *, local: bool) -> None:
        self._sessions, self._bodies, self._local = sessions, bodies, local
        self._turn = asyncio.Lock()

    async def chat(self, request: Request) -> Response:
        """`POST /v1/chat/completions`."""
        session = self._session(request)
        body, messages, tools = await self._bodies.read(request, read_chat)
        model = _model(session, body.model)
        await check_texts(session, written(messages, tools), self._turn)
        try:
            tokens = session.conversations.prompt(messages, tools)
        except ValueError as error:
            raise ApiError(400, f"messages: {error}", param="messages") from error
        most = body.max_completion_tokens or body.max_tokens
        sampling = body.sampling(session.sampling, top_probs=body.top_logprobs or 0, max_tokens=most)
        stops = session.conversations.renderer.stop_tokens
        prompts = _prompts([tokens], body, sampling, stops, messages, tools)
        if body.logprobs:
            check_logprobs(prompts, session.context_tokens)
        choices = await until_gone(request, _complete(session, prompts, messages, logprobs=bool(body.logprobs)))
        shown = await _each(
            answer.chat_choice,
            session,
            choices,
            logprobs=bool(body.logprobs),
            token_ids=body.return_token_ids,
        )
        extra = {"prompt_token_ids": list(tokens)} if body.return_token_ids else {}
        counts = answer.usage(choices)
        if not body.stream:
            whole = answer.head("chat.completion", model) | {"choices": shown, "usage": counts}
            return JSONResponse(whole | extra)
        head = answer.head("chat.completion.chunk", model)
        return _stream(head, list(answer.chat_chunks(shown)), counts, body, extra)

    async def completions(self, request: Request) -> Response:
        """`POST /v1/completions`."""
        session = self._session(request)
        body = await self._bodies.read(request, partial(parse, CompletionRequest))
        model = _model(session, body.model)
        conversations = session.conversations
        prompts: list[tuple[int, ...]] = []
        for prompt in body.prompts:
            if isinstance(prompt, str):
                await check_texts(session, [prompt], self._turn)
            prompts.append(conversations.plain(prompt) if isinstance(prompt, str) else tuple(prompt))
        sampling = body.sampling(session.sampling, top_probs=body.logprobs or 0, max_tokens=body.max_tokens)
        stops = (*conversations.renderer.stop_tokens, *(body.stop_token_ids or ()))
        asked = _prompts(prompts, body, sampling, stops)
        if body.logprobs is not None:
            check_logprobs(asked, session.context_tokens)
        choices = await until_gone(request, _complete(session, asked, None, logprobs=body.logprobs is not None))
        shown = await _each(
            answer.text_choice,
            session,
            choices,
            logprobs=body.logprobs,
            token_ids=body.return_token_ids,
            names=body.return_tokens_as_token_ids,
        )
        counts = answer.usage(choices, len(prompts))
        first = answer.head("text_completion", model)
        if not body.stream:
            return JSONResponse(first | {"choices": shown, "usage": counts})
        return _stream(first, shown, counts, body, {})

    async def models(self, request: Request) -> Response:
        """`GET /v1/models`."""
        names = self._session(request).models or (ANY_MODEL,)
        return JSONResponse({"object": "list", "data": [_card(name) for name in names]})

    async def model(self, request: Request) -> Response:
        """`GET /v1/models/{name}`."""
        return JSONResponse(_card(_model(self._session(request), request.path_params["name"])))

    async def outcome(self, request: Request) -> Response:
        """`POST /v1/outcome`: the result of an episode."""
        session = self._session(request)
        if session.report is None:
            raise ApiError(404, "got an outcome for a server that trains nothing; need explorer=Program(...)")
        session.report(await self._bodies.read(request, read_outcome))
        return JSONResponse({"ok": True})

    def _session(self, request: Request) -> Session:
        if self._local and not names_loopback(host := request.headers.get("host", "")):
            raise ApiError(403, f"got the host {host[:80]!r} on loopback; need the address that the server prints")
        scheme, _, key = _sent(request.headers.get("authorization", "")).partition(" ")
        session = self._sessions.find(key.strip() if scheme.lower() == "bearer" else "")
        if session is None:
            raise ApiError(
                401,
                "got a wrong key or none; need the key of this server in the header Authorization: Bearer KEY",
                code="invalid_api_key",
            )
        return session


def _sent(header: str) -> str:
    """A header as its client wrote it: in UTF-8, or in Latin-1."""
    raw = header.encode("latin-1")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return header


def _model(session: Session, name: str) -> str:
    """The name of the model in the response."""
    if session.models and name not in session.models:
        known = ", ".join(session.models)
        raise ApiError(
            404, f"got model {shorten(name, 80)!r}; need one of: {known}", code="model_not_found", param="model"
        )
    return name


def _card(name: str) -> Mapping[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "bough"}


def _prompts(
    texts: Sequence[tuple[int, ...]],
    body: SamplingFields,
    sampling: Sampling,
    stops: tuple[int, ...],
    messages: tuple[Message, ...] = (),
    tools: tuple[Tool, ...] = (),
) -> list[Prompt]:
    """One prompt for each choice."""
    return [
        Prompt(
            tokens=tokens,
            sampling=sampling,
            stop_tokens=stops,
            seed=body.seed,
            choice=choice,
            messages=messages,
            tools=tools,
            stops=body.stops,
        )
        for tokens in texts
        for choice in range(body.n or 1)
    ]


async def _complete(
    session: Session,
    prompts: Sequence[Prompt],
    messages: Sequence[Message] | None,
    *,
    logprobs: bool,
) -> list[Choice]:
    """The completions of prompts, in their order; `messages` is the chat, None outside of one."""
    try:
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(_awaited(session.complete(prompt))) for prompt in prompts]
    except BaseExceptionGroup as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        raise first from None
    choices: list[Choice] = []
    for prompt, call in zip(prompts, calls, strict=True):
        completed = call.result()
        completion = completed.completion
        if completed.denied:
            choices.append(Choice(prompt_tokens=prompt.tokens, completion=completion, denied=completed.denied))
            continue
        if completion.finish is FinishReason.ABORTED:
            raise EngineFault("the engine aborted the completion")
        if logprobs and completion.logprobs is None:
            raise ApiError(400, "logprobs: the engine of this server returns none; leave it out", param="logprobs")
        conversations, text = session.conversations, None
        if cut := cut_at(conversations.renderer, completion, prompt.stops):
            completion, text = cut.completion, cut.text
        said = None if messages is None else conversations.answer(messages, completion.tokens, prompt.choice, text)
        choices.append(Choice(prompt_tokens=prompt.tokens, completion=completion, message=said, text=text))
    return choices


async def _each(
    show: Callable[..., dict[str, Any]], session: Session, choices: Sequence[Choice], **fields: object
) -> list[dict[str, Any]]:
    """The choices of a response. Many alternatives take seconds to write: other clients are answered in between."""
    texts, shown = TokenTexts(session.conversations.renderer), list[dict[str, Any]]()
    for index, choice in enumerate(choices):
        shown.append(show(texts, index, choice, **fields))
        await asyncio.sleep(0)
    return shown


async def _awaited(call: Awaitable[Result]) -> Result:
    try:
        return await call
    except ValueError as error:
        raise ApiError(400, str(error)) from error


def _stream(
    head: Mapping[str, Any],
    choices: Sequence[Mapping[str, Any]],
    counts: Mapping[str, int],
    body: SamplingFields,
    extra: Mapping[str, Any],
) -> Response:
    """A stream of chunks, one a choice; `extra` is in the first alone."""
    chunks = [{**head, "choices": [choice]} for choice in choices]
    chunks[0] |= extra
    if body.stream_options and body.stream_options.include_usage:
        chunks.append({**head, "choices": [], "usage": counts})
    return StreamingResponse(answer.events(chunks), media_type="text/event-stream")


async def _gone(request: Request, error: Exception) -> Response:
    del request, error
    return Response(status_code=499)


async def _health(request: Request) -> Response:
    del request
    return JSONResponse({"status": "ok"})


async def _refuse(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, ApiError)
    return JSONResponse(error.body, status_code=error.status)


async def _broken(request: Request, error: Exception) -> Response:
    """503 for a fault of the engine, which may pass; 500 for a defect of the server."""
    if isinstance(error, EngineFault):
        return await _refuse(request, ApiError(503, f"the engine failed: {error}", code="engine_fault"))
    return await _refuse(request, ApiError(500, f"the server failed: {type(error).__name__}: {error}"))


async def _no_such_path(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = (
        f"got {request.method} {request.url.path}: {error.detail}; need one of the paths of OpenAI's API below /v1"
    )
    return await _refuse(request, ApiError(error.status_code, message))
