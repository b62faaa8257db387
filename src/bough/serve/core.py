"""The core of a server: sessions, messages, calls and tokens. Dialects translate requests and answers."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from starlette.requests import Request

from bough.engine import EngineFault, FinishReason, Sampling
from bough.serve.address import names_loopback
from bough.serve.body import Bodies
from bough.serve.choice import Choice, TokenTexts
from bough.serve.disconnect import until_disconnect
from bough.serve.errors import ApiError
from bough.serve.restriction import Restriction, grammar_of_answer
from bough.serve.session import Prompt, Session, Sessions, check_logprobs
from bough.serve.stop import cut_at
from bough.serve.texts import check_texts, written
from bough.serve.thinking import thinking_of
from bough.tree import Message, Tool

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """A request for the next message of a chat, whatever its dialect.

    Attributes:
        messages: The chat before it, with the results of tools in the order of their calls.
        tools: The tools that may be called; without any a call is text.
        sampling: How tokens are sampled.
        stops: Strings before the first of which the answer ends.
        seed: The request's seed; None without one.
        choices: The number of answers.
        logprobs: Whether the answer has the log-probabilities of its tokens.
        parallel_calls: Whether an answer may have several calls; else it has the first alone.
        restriction: What the answer must be, enforced while it is sampled; () for anything.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    sampling: Sampling
    stops: Sequence[str] = ()
    seed: int | None = None
    choices: int = 1
    logprobs: bool = False
    parallel_calls: bool = True
    restriction: Restriction = ()

    @property
    def most_calls(self) -> int | None:
        """Most calls of an answer; None for any number."""
        return (None if self.parallel_calls else 1) if self.tools else 0


class Core:
    """What the dialects of one server share.

    Attributes:
        bodies: Reads the bodies of requests.
    """

    def __init__(self, sessions: Sessions, bodies: Bodies, *, local: bool) -> None:
        self.bodies, self._sessions, self._local = bodies, sessions, local
        self._turn = asyncio.Lock()

    def session(self, request: Request) -> Session:
        """The session of a request's key, in the header Authorization or x-api-key.

        Raises:
            ApiError: 403 for a host that is not loopback's on a server that has this limit; 401 for a wrong key.
        """
        if self._local and not names_loopback(host := request.headers.get("host", "")):
            raise ApiError(403, f"got the host {host[:80]!r} on loopback; need the address that the server prints")
        scheme, _, key = _sent(request.headers.get("authorization", "")).partition(" ")
        bearer = key.strip() if scheme.lower() == "bearer" else ""
        for each in dict.fromkeys((bearer, _sent(request.headers.get("x-api-key", "")).strip())):
            if session := self._sessions.find(each):
                return session
        raise ApiError(
            401,
            "got a wrong key or none; need the key of this server in the header Authorization: Bearer KEY "
            "(or x-api-key: KEY)",
            code="invalid_api_key",
        )

    async def check_texts(self, session: Session, texts: Sequence[str]) -> None:
        """Refuse texts that are far too long, see `bough.serve.texts`."""
        await check_texts(session, texts, self._turn)

    async def prompt(self, session: Session, messages: Sequence[Message], tools: Sequence[Tool]) -> tuple[int, ...]:
        """The tokens of a chat's prompt.

        Raises:
            ApiError: 400 for a chat that the template can't show, or that is far too long.
        """
        if session.conversations.renderer.prompt_thinking is None and any(map(thinking_of, messages)):
            raise ApiError(
                400,
                "got an assistant's message with reasoning (reasoning_content, a reasoning item or a thinking block), "
                "and the model's chat template has none; leave it out",
                param="messages",
            )
        await self.check_texts(session, written(messages, tools))
        try:
            return session.conversations.prompt(messages, tools)
        except ValueError as error:
            raise ApiError(400, f"messages: {error}", param="messages") from error

    async def answer(self, request: Request, session: Session, turn: ChatTurn) -> list[Choice]:
        """The next messages of a chat.

        Raises:
            ApiError: for a request that the session refuses; 499 when the client closes the connection.
            EngineFault: when the engine broke.
        """
        tokens = await self.prompt(session, turn.messages, turn.tools)
        prompt = Prompt(
            tokens=tokens,
            sampling=turn.sampling,
            stop_tokens=session.conversations.renderer.stop_tokens,
            seed=turn.seed,
            messages=turn.messages,
            tools=turn.tools,
            stops=turn.stops,
            most_calls=turn.most_calls,
            grammar=grammar_of_answer(
                session.conversations.renderer, turn.restriction, turn.tools, most_calls=turn.most_calls
            ),
        )
        prompts = [replace(prompt, choice=choice) for choice in range(turn.choices)]
        return await self.complete(request, session, prompts, turn.messages, logprobs=turn.logprobs)

    async def complete(
        self,
        request: Request,
        session: Session,
        prompts: Sequence[Prompt],
        messages: Sequence[Message] | None,
        *,
        logprobs: bool,
    ) -> list[Choice]:
        """The completions of prompts, in their order; `messages` is the chat, None outside of one.

        Raises:
            ApiError: for a request that the session refuses; 499 when the client closes the connection.
            EngineFault: when the engine broke.
        """
        if logprobs:
            check_logprobs(prompts, session.context_tokens)
        if retry := _retry(request):
            prompts = [replace(prompt, retry=retry) for prompt in prompts]
        return await until_disconnect(request, _complete(session, prompts, messages, logprobs=logprobs))


async def choice_rows(
    show: Callable[..., dict[str, Any]], session: Session, choices: Sequence[Choice], **fields: object
) -> list[dict[str, Any]]:
    """The choices of a response. Many alternatives take seconds to write: other clients are answered in between."""
    texts, found = TokenTexts(session.conversations.renderer), list[dict[str, Any]]()
    for index, choice in enumerate(choices):
        found.append(show(texts, index, choice, **fields))
        await asyncio.sleep(0)
    return found


def _retry(request: Request) -> int:
    """How often a client has sent a request before: OpenAI's and Anthropic's clients number their retries."""
    sent = request.headers.get("x-stainless-retry-count", "")
    return int(sent) if re.fullmatch(r"[0-9]{1,4}", sent) else 0


def _sent(header: str) -> str:
    """A header as its client wrote it: in UTF-8, or in Latin-1."""
    raw = header.encode("latin-1")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return header


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
        if prompt.grammar is not None and completion.allowed is None:
            raise ApiError(
                400, "got a forced call or a format of the answer, which the engine of this server does not enforce"
            )
        if logprobs and completion.logprobs is None:
            raise ApiError(400, "logprobs: the engine of this server returns none; leave it out", param="logprobs")
        conversations, text, stop = session.conversations, None, ""
        if cut := cut_at(conversations.renderer, completion, prompt.stops):
            completion, text, stop = cut.completion, cut.text, cut.stop
        said = (
            None
            if messages is None
            else conversations.answer(messages, completion.tokens, prompt.choice, text, prompt.most_calls, prompt.tools)
        )
        choices.append(Choice(prompt_tokens=prompt.tokens, completion=completion, message=said, text=text, stop=stop))
    if session.answered is not None:
        session.answered([call.result().number for call in calls])
    return choices


async def _awaited(call: Awaitable[Result]) -> Result:
    try:
        return await call
    except ValueError as error:
        raise ApiError(400, str(error)) from error
