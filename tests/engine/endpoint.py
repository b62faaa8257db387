"""A small server that speaks both dialects of OpenAI's protocol over real connections, and misbehaves when told to."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import pairwise
from types import TracebackType
from typing import Any, TypeAlias

DROP, HANG = "drop", "hang"
"""Replies: the connection is closed without an answer; no answer ever comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    body: bytes | Mapping[str, Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0


Reply: TypeAlias = Say | str


def error(status: int, message: str, **headers: str) -> Say:
    """An error as OpenAI writes it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Say(status=status, body={"error": {"message": message, "code": None}}, headers=named)


def chat(content: str | None, finish: str = "stop", counts: tuple[int, int] = (10, 4)) -> Say:
    message = {"role": "assistant", "content": content}
    return Say(body={"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": _usage(*counts)})


def follow(token: int) -> tuple[int, float]:
    """The stand-in's language: what comes after a token, and its log-probability."""
    return (token * 7 + 3) % 23, -0.125 * (token % 8)


def complete(asked: Asked, ids: bool = True) -> Say:
    """What vLLM answers, as its own server code writes it: `token_ids`, or names of ids among the log-probabilities."""
    prompt: list[int] = asked.body["prompt"]
    if isinstance(prompt[0], list):
        return _each(asked, prompt, ids)
    tokens, logprobs, finish = [], [], "length"
    for _ in range(asked.body["max_tokens"]):
        token, logprob = follow((prompt + tokens)[-1])
        tokens.append(token)
        logprobs.append(logprob)
        if token in asked.body.get("stop_token_ids", ()):
            finish = "stop"
            break
    shown, known = tokens, logprobs
    if asked.body.get("echo"):
        shown = prompt + tokens
        known = [None, *(_of(a, b) for a, b in pairwise(prompt)), *logprobs]
    choice: dict[str, Any] = {"index": 0, "text": "...", "finish_reason": finish}
    if "logprobs" in asked.body:
        choice["logprobs"] = {"tokens": [f"token_id:{token}" for token in shown], "token_logprobs": known}
    if ids and asked.body.get("return_token_ids"):
        choice["token_ids"] = tokens
    return Say(body={"choices": [choice], "usage": _usage(len(prompt), len(tokens))})


def _each(asked: Asked, prompts: list[list[int]], ids: bool) -> Say:
    """The answers to several prompts, the last first: a server may name their places in any order."""
    choices = [
        complete(replace(asked, body={**asked.body, "prompt": prompt}), ids).body["choices"][0] | {"index": place}
        for place, prompt in enumerate(prompts)
    ]
    return Say(body={"choices": choices[::-1], "usage": _usage(1, 1)})


class Endpoint:
    """Serves in the loop of the test.

    Attributes:
        asked: Every request so far.
        flying: Requests that wait for their answer.
        most: The most there were at a time.
        left: Requests whose client went away before the answer.
        connections: Open connections.
    """

    def __init__(self, reply: Callable[[Asked], Reply]) -> None:
        self.asked: list[Asked] = []
        self.flying = self.most = self.left = self.connections = 0
        self._reply = reply

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> "Endpoint":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (asked := await self._read(reader)) is not None:
                self.asked.append(asked)
                self.flying += 1
                self.most = max(self.most, self.flying)
                try:
                    if not await self._answer(self._reply(asked), reader, writer):
                        break
                finally:
                    self.flying -= 1
        finally:
            self.connections -= 1
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Asked | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        lines = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in lines}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        return Asked(path=head[0].split()[1], headers=headers, body=body, at_s=asyncio.get_running_loop().time())

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        if isinstance(reply, str):
            if reply == HANG:
                # A client that waits sends nothing: an end of what it sends is an end of its waiting.
                gone = not await reader.read(1)
                self.left += gone
            return False
        if reply.after_s:
            await asyncio.sleep(reply.after_s)
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body)), **reply.headers}
        head = [
            f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}",
            *(f"{k}: {v}" for k, v in headers.items()),
        ]
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        await writer.drain()
        return True


def _of(before: int, after: int) -> float:
    """The log-probability of any token after another."""
    token, logprob = follow(before)
    return logprob if token == after else -5.0 - after


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
