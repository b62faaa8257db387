"""A server over a scripted engine, for tests: every byte is a token."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from openai import AsyncOpenAI
from starlette.applications import Starlette
from tests.plain_renderer import PlainRenderer

from bough.engine import Engine, Request, Sampling, Scripted
from bough.serve import Conversations, EngineSession
from bough.serve.app import make_app
from bough.serve.body import BODY_BYTES
from bough.tree import Action, AgentAction, BadCall, Message, Tool, ToolCall, action_text

try:  # the client of newer versions of openai
    import httpx2 as httpx
except ImportError:
    import httpx

END = 256
ROLES = {"system": 257, "user": 258, "assistant": 259, "tool": 260}


class ByteChat(PlainRenderer):
    """Bytes between marks; a text that begins with "{" is a call."""

    stop_tokens = (END,)

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...]:
        told = [ROLES["system"], *"".join(tool.name for tool in tools).encode(), END] if tools else []
        for message in messages:
            body = message.tokens or (*self._said(message).encode(), END)
            told += [ROLES[message.role], *body]
        return (*told, ROLES["assistant"])

    def parse(self, tokens: Sequence[int], tools: Sequence[Tool] = ()) -> Action:
        del tools
        text = self.text(tokens)
        if not text.startswith("{"):
            return Action(text=text)
        try:
            row = json.loads(text)
            return Action(calls=(ToolCall(name=row["name"], arguments=row["arguments"]),))
        except (ValueError, KeyError) as error:
            return Action(calls=(BadCall(text=text, problem=str(error)),))

    def extend(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...]:
        return self.render(messages, tools)[len(self.render(messages[:-1], tools)) - 1 :]

    def write(self, action: AgentAction) -> tuple[int, ...]:
        return (*action_text(action).encode(), END)

    def text(self, tokens: Sequence[int]) -> str:
        return bytes(token for token in tokens if token < END).decode("utf-8", "replace")

    def _said(self, message: Message) -> str:
        return message.content + "".join(json.dumps([call.name, call.arguments]) for call in message.tool_calls)


def scripted(*texts: str, latency_s: float = 0.0, context_tokens: int = 4096) -> Scripted:
    """An engine that answers with the texts in turn."""
    answers = iter(range(10**6))

    def script(request: Request) -> Sequence[int]:
        del request
        return ByteChat().write(texts[next(answers) % len(texts)])

    return Scripted(script=script, latency_s=latency_s, context_tokens=context_tokens)


def sessions(engine: Engine, key: str = "", models: tuple[str, ...] = ("tiny",)) -> EngineSession:
    sampling = Sampling(max_tokens=64)
    return EngineSession(engine, Conversations(ByteChat()), models=models, sampling=sampling, key=key)


@asynccontextmanager
async def client(
    engine: Engine,
    *,
    key: str = "",
    used: str = "any",
    body_bytes: int = BODY_BYTES,
    models: tuple[str, ...] = ("tiny",),
) -> AsyncIterator[AsyncOpenAI]:
    """OpenAI's client of a server in this process."""
    app = make_app(sessions(engine, key, models), body_bytes=body_bytes)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, timeout=30) as http:
        yield AsyncOpenAI(base_url="http://test/v1", api_key=used, http_client=http, max_retries=0)


async def posted(app: Starlette, path: str, body: bytes) -> tuple[int, str]:
    """The status and the text of the answer to a body, without a client between."""
    messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
    answered = asyncio.Event()
    status, text = 0, bytearray()

    async def receive() -> Any:
        if not messages:
            await answered.wait()
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)
        text.extend(message.get("body", b""))

    headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
    with suppress(Exception):  # a defect is answered with status 500 before it is raised
        await app(scope, receive, send)
    answered.set()
    return status, text.decode()


Make = Callable[[], Engine]
