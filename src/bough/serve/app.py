"""The application: dialects over the sessions of a server."""

import contextlib
from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bough.engine import EngineFault
from bough.serve.body import BODY_BYTES, Bodies
from bough.serve.core import Core
from bough.serve.dialects.chat import Chat
from bough.serve.dialects.completions import Completions
from bough.serve.dialects.messages import Messages
from bough.serve.dialects.messages import shapes as anthropic
from bough.serve.dialects.responses import Responses
from bough.serve.errors import ApiError
from bough.serve.request import read_outcome
from bough.serve.session import Sessions


def make_app(sessions: Sessions, *, body_bytes: int = BODY_BYTES, local: bool = False) -> Starlette:
    """The application that answers requests.

    Paths: `POST /v1/chat/completions`, `POST /v1/completions` and `POST /v1/responses` of OpenAI's API; `POST
    /v1/messages` and `POST /v1/messages/count_tokens` of Anthropic's; `GET /v1/models` and `GET /v1/models/{name}` of
    both, with Anthropic's answers for a request with the header anthropic-version; `POST /v1/outcome` (for sessions
    with a report), `GET /health`. Errors have the form of the API.

    Args:
        sessions: The sessions of the server.
        body_bytes: Most bytes of a request's body.
        local: Whether it is served on loopback: requests to other hosts are refused.
    """
    core = Core(sessions, Bodies(body_bytes), local=local)
    api, messages = _Api(core), Messages(core)
    return Starlette(
        routes=[
            Route("/v1/chat/completions", Chat(core).create, methods=["POST"]),
            Route("/v1/completions", Completions(core).create, methods=["POST"]),
            Route("/v1/responses", Responses(core).create, methods=["POST"]),
            Route("/v1/messages", messages.create, methods=["POST"]),
            Route("/v1/messages/count_tokens", messages.count, methods=["POST"]),
            Route("/v1/models", api.models, methods=["GET"]),
            Route("/v1/models/{name:path}", api.model, methods=["GET"]),
            Route("/v1/outcome", api.outcome, methods=["POST"]),
            Route("/health", _health, methods=["GET"]),
        ],
        exception_handlers={
            ApiError: api.refuse,
            EngineFault: _broken,
            ClientDisconnect: _gone,
            HTTPException: api.no_such_path,
            Exception: _broken,
        },
    )


class _Api:
    """The handlers of what no dialect has alone."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def models(self, request: Request) -> Response:
        """`GET /v1/models`."""
        names = self._core.session(request).listed_models
        if anthropic.is_request(request):
            return JSONResponse(anthropic.listed(names))
        return JSONResponse({"object": "list", "data": [_card(name) for name in names]})

    async def model(self, request: Request) -> Response:
        """`GET /v1/models/{name}`."""
        name = self._core.session(request).model(request.path_params["name"])
        return JSONResponse(anthropic.card(name) if anthropic.is_request(request) else _card(name))

    async def outcome(self, request: Request) -> Response:
        """`POST /v1/outcome`: the result of an episode."""
        session = self._core.session(request)
        if session.report is None:
            raise ApiError(404, "got an outcome for a server that trains nothing; need explorer=Program(...)")
        session.report(await self._core.bodies.read(request, read_outcome))
        return JSONResponse({"ok": True})

    async def refuse(self, request: Request, error: Exception) -> Response:
        """The answer to a request with an error, which its session counts."""
        assert isinstance(error, ApiError)
        with contextlib.suppress(ApiError):
            if (refused := self._core.session(request).refused) is not None:
                refused(error)
        return await _error(request, error)

    async def no_such_path(self, request: Request, error: Exception) -> Response:
        """The answer to a request for a path that no dialect has."""
        assert isinstance(error, HTTPException)
        message = (
            f"got {request.method} {request.url.path}: {error.detail}; need one of the paths of OpenAI's API below /v1 "
            "(chat/completions, completions, responses, models) or of Anthropic's (messages, messages/count_tokens, "
            "models)"
        )
        return await self.refuse(request, ApiError(error.status_code, message))


def _card(name: str) -> Mapping[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "bough"}


async def _gone(request: Request, error: Exception) -> Response:
    del request, error
    return Response(status_code=499)


async def _health(request: Request) -> Response:
    del request
    return JSONResponse({"status": "ok"})


async def _error(request: Request, error: ApiError) -> Response:
    body = anthropic.error_body(error) if anthropic.is_request(request) else error.body
    return JSONResponse(body, status_code=error.status)


async def _broken(request: Request, error: Exception) -> Response:
    """503 for a fault of the engine, which may pass; 500 for a defect of the server."""
    if isinstance(error, EngineFault):
        return await _error(request, ApiError(503, f"the engine failed: {error}", code="engine_fault"))
    return await _error(request, ApiError(500, f"the server failed: {type(error).__name__}: {error}"))
