"""The web application over run directories."""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bough.config.config import ConfigError
from bough.engine import EngineFault
from bough.env import EnvFault
from bough.serve.address import names_loopback
from bough.store import StoreError
from bough.viewer.comparisons import comparison, comparison_rows
from bough.viewer.parts import NoParts, Parts
from bough.viewer.player import Player
from bough.viewer.run_answers import RUN_ANSWERS, RunAnswer
from bough.viewer.runs import Runs
from bough.viewer.tree_answers import TreeAnswers
from bough.viewer.trees import TreeRoutes, reads, run_in

WEB = Path(__file__).with_name("web")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy: nothing inline and nothing from elsewhere runs."""

WATCH_S = 1.0
"""Seconds between two looks at the files of the runs."""

COOKIE = "bough-viewer"


def viewer_app(
    runs: Runs,
    branches: Path,
    player: Player | None,
    token: str = "",
    local: bool = True,
    parts: Parts | None = None,
) -> ASGIApp:
    """The application.

    Args:
        runs: The runs that it shows.
        branches: The folder of new branches.
        player: Goes on from turns; None where nothing is played.
        token: What a visitor has to know, `?token=...` once; "" for nothing.
        local: Whether it listens on loopback alone: requests to other hosts are refused.
        parts: The tokenizers and environments of the runs; None without: tokens are numbers, states have no picture.
    """
    trees = TreeRoutes(runs=runs, folder=branches, player=player, answers=TreeAnswers(parts or NoParts()))
    read: dict[str, Callable[[Request], Mapping[str, object]]] = {
        "/api/runs": lambda _: {"runs": runs.rows()},
        "/api/comparisons": lambda _: comparison_rows(runs),
        "/api/comparison/{name}": lambda request: comparison(runs, request.path_params["name"]),
        **{f"/api/run/{{run}}{end}": partial(_of_run, runs, answer) for end, answer in RUN_ANSWERS.items()},
    }

    def page(_: Request) -> Response:
        return FileResponse(WEB / "index.html")

    def events(request: Request) -> Response:
        return _events(request, runs)

    routes = [
        Route("/", page),
        Route("/api/events", events),
        *(Route(path, reads(answer)) for path, answer in read.items()),
        *trees.routes(),
        Mount("/web", StaticFiles(directory=WEB)),
    ]
    wrong = dict.fromkeys((StoreError, ConfigError, ValueError, EnvFault, EngineFault, OSError), _refusal)
    app = Starlette(routes=routes, exception_handlers={**wrong, HTTPException: _missing})
    return _Guarded(app, token=token, local=local)


def _of_run(runs: Runs, answer: RunAnswer, request: Request) -> Mapping[str, object]:
    return answer(runs, run_in(request))


def _events(request: Request, runs: Runs) -> Response:
    """The names of runs whose files have changed, as server-sent events."""

    async def events() -> AsyncIterator[str]:
        known = await asyncio.to_thread(runs.stamps)
        yield "retry: 2000\n\n"
        while not await request.is_disconnected():
            await asyncio.sleep(WATCH_S)
            stamps = await asyncio.to_thread(runs.stamps)
            changed = [name for name, stamp in stamps.items() if known.get(name) != stamp]
            yield f"data: {json.dumps(changed)}\n\n" if changed or known.keys() != stamps.keys() else ": \n\n"
            known = stamps

    return StreamingResponse(events(), media_type="text/event-stream")


def _refusal(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error) or type(error).__name__}, status_code=400)


def _missing(_: Request, error: Exception) -> Response:
    found = cast("HTTPException", error)
    return JSONResponse({"error": found.detail}, status_code=found.status_code)


class _Guarded:
    """Refuses visitors without the token and, on loopback, requests to other hosts; every answer has its headers."""

    def __init__(self, app: ASGIApp, *, token: str, local: bool) -> None:
        self._app, self._token, self._local = app, token, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        response = self._refused(request)
        headers = [
            (b"content-security-policy", POLICY.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        ]
        if response is None and self._token and request.query_params.get("token"):
            headers.append((b"set-cookie", f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/".encode()))

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        await (response or self._app)(scope, receive, guarded)

    def _refused(self, request: Request) -> Response | None:
        if self._local and not names_loopback(host := request.headers.get("host", "")):
            return JSONResponse({"error": f"got the host {host[:80]!r} on loopback; need the printed address"}, 403)
        if self._token:
            given = request.query_params.get("token") or request.cookies.get(COOKIE, "")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                return JSONResponse({"error": "got no token, or a wrong one; need the printed address"}, 401)
        # A page of another site can send a form, but no JSON, without asking first.
        if request.method == "POST" and request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return JSONResponse({"error": "got another type than application/json"}, 415)
        return None
