"""HTTP calls to a server, with a concurrency limit, a deadline per attempt, retries and usage counts."""

import asyncio
import json
import random
import time
from dataclasses import replace
from email.utils import parsedate_to_datetime
from itertools import count
from typing import cast

from openai import APIConnectionError, APIStatusError, AsyncOpenAI
from pydantic import BaseModel, Field, ValidationError

from bough.engine.engine import EngineFault
from bough.engine.openai import OpenAi
from bough.engine.usage import ServerUsage

PASSING = (408, 409, 429)
"""Transient HTTP statuses, besides 500 and above."""

CHECK_S = 20.0
"""The deadline of a check."""

SHOWN = 300
"""Most characters of a server's error text in an error message."""


class Function(BaseModel):
    """The function of a call; the arguments are text, which need not be JSON."""

    name: str = ""
    arguments: str = ""


class ServerCall(BaseModel):
    """A call of a tool."""

    id: str | None = None
    function: Function


class Message(BaseModel):
    """The assistant's message of a chat completion."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ServerCall] | None = None

    @property
    def rows(self) -> list[dict[str, str]]:
        """Id, name and arguments of each call."""
        calls = self.tool_calls or []
        return [
            {"id": call.id or "", "name": call.function.name, "arguments": call.function.arguments} for call in calls
        ]


class Logprobs(BaseModel):
    """Tokens and their log-probabilities; null for the first token of a prompt."""

    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None


class Choice(BaseModel):
    """One completion, of either API."""

    index: int = 0
    finish_reason: str | None = None
    message: Message | None = None
    token_ids: list[int] | None = None
    logprobs: Logprobs | None = None

    @property
    def said(self) -> Message:
        """The message; an empty one where the server sent none."""
        return self.message or Message()


class Counts(BaseModel):
    """Token counts of a response."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class Response(BaseModel):
    """The parsed fields of a response."""

    choices: list[Choice] = Field(min_length=1)
    usage: Counts | None = None


class RequestError(Exception):
    """A failed attempt.

    Attributes:
        passing: Whether another attempt may succeed.
        wait_s: The wait before the next attempt, from the Retry-After header.
    """

    def __init__(self, text: str, *, passing: bool = True, wait_s: float = 0.0) -> None:
        super().__init__(text)
        self.passing, self.wait_s = passing, wait_s


class OpenAiClient:
    """Makes calls and counts their usage.

    Attributes:
        usage: Total usage so far.
    """

    def __init__(self, config: OpenAi, key: str) -> None:
        """Store the settings; `key` is "" for a server without keys."""
        self.usage = ServerUsage(price=None if config.price_per_million is None else 0.0)
        self._config, self._key = config, key
        # The client's retries have no seed, and its timeout does not bound a whole attempt.
        self._client = AsyncOpenAI(api_key=key or "none", base_url=config.base_url, max_retries=0, timeout=None)
        self._places = asyncio.Semaphore(config.concurrency)
        self._running: set[asyncio.Task[list[Choice]]] = set()
        self._closed = False

    async def ask(self, path: str, body: dict[str, object], *, seed: int) -> Choice:
        """Return the first completion of `ask_each`."""
        return (await self.ask_each(path, body, seed=seed))[0]

    async def ask_each(self, path: str, body: dict[str, object], *, seed: int) -> list[Choice]:
        """Post `body` to `path` below `base_url`, within the concurrency limit; return the completions by index.

        Raises:
            EngineFault: when the server rejects the request or all attempts fail, or `close` was called.
        """
        if self._closed:
            raise EngineFault("the engine is closed; make a new one")
        self.usage = replace(self.usage, requests=self.usage.requests + 1)
        task = asyncio.create_task(self._insist(path, body, random.Random(seed)))
        self._running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._closed and caller is not None and not caller.cancelling():
                raise EngineFault("the engine was closed while it waited for the server") from None
            raise
        finally:
            self._running.discard(task)

    async def check(self) -> None:
        """List the server's models: checks address, key and model. A server without such a list passes.

        Raises:
            EngineFault: when nothing answers at the address, the server refuses the key, or its list lacks the model.
        """
        config = self._config
        try:
            async with asyncio.timeout(min(CHECK_S, config.deadline_s)):
                listed = _names(await self._client.get("/models", cast_to=str))
        except TimeoutError:
            raise EngineFault(f"{config.base_url}: no answer within {CHECK_S:g} s; check OpenAi.base_url") from None
        except APIStatusError as error:
            if error.status_code in (401, 403):
                raise EngineFault(f"{config.base_url}: {self._refused(error)}") from None
            return
        except APIConnectionError as error:
            raise EngineFault(f"{config.base_url}: {_broken(error)}") from None
        if listed and not any(_is_listed(config.model, each) for each in listed):
            names = ", ".join(listed[:8])
            raise EngineFault(
                f"{config.base_url}: got model {config.model!r}; need one of: {names}; check OpenAi.model"
            )

    async def close(self) -> None:
        """Cancel the calls in flight and close the connections. Safe to call twice."""
        self._closed = True
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._client.close()

    async def _insist(self, path: str, body: dict[str, object], jitter: random.Random) -> list[Choice]:
        config = self._config
        async with self._places:
            for attempt in count():
                try:
                    return await self._try(path, body)
                except RequestError as trouble:
                    if not trouble.passing or attempt >= config.retries:
                        times = "" if attempt == 0 else f" (asked {attempt + 1} times)"
                        raise EngineFault(f"{config.base_url}{times}: {trouble}") from None
                    wait_s = config.backoff_s * 2**attempt * jitter.uniform(0.5, 1.5)
                    self.usage = replace(self.usage, retries=self.usage.retries + 1)
                    await asyncio.sleep(max(trouble.wait_s, min(wait_s, config.deadline_s)))
        raise AssertionError("unreachable")

    async def _try(self, path: str, body: dict[str, object]) -> list[Choice]:
        deadline_s = self._config.deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                text = await self._client.post(f"/{path}", cast_to=str, body=body)
            answer = Response.model_validate_json(text)
        except TimeoutError:
            raise RequestError(f"no answer within {deadline_s:g} s (OpenAi.deadline_s)") from None
        except APIStatusError as error:
            raise self._refused(error) from None
        except APIConnectionError as error:
            raise RequestError(_broken(error)) from None
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or "answer"
            raise RequestError(f"got an answer that is none ({place}: {first['msg']})") from None
        self._count(answer.usage or Counts())
        return sorted(answer.choices, key=lambda choice: choice.index)

    def _count(self, counts: Counts) -> None:
        usage, prices = self.usage, self._config.price_per_million
        price = usage.price
        if prices is not None and price is not None:
            price += (counts.prompt_tokens * prices[0] + counts.completion_tokens * prices[1]) / 1e6
        self.usage = replace(
            usage,
            prompt_tokens=usage.prompt_tokens + counts.prompt_tokens,
            completion_tokens=usage.completion_tokens + counts.completion_tokens,
            price=price,
        )

    def _refused(self, error: APIStatusError) -> RequestError:
        """Classify an HTTP error: transient or permanent, with its wait and a remedy."""
        status, said = error.status_code, self._said(error)
        wait_s = _retry_after_s(error.response.headers.get("retry-after", ""))
        text = f"status {status}: {said}"
        passing = status in PASSING or status >= 500
        if not passing:
            text = f"{text}; {self._mend(status, said)}"
        elif error.code == "insufficient_quota":
            text, passing = f"{text}; the key's account has no credit left", False
        elif wait_s > self._config.deadline_s:
            text, passing = f"{text}; the server asks for a wait of {wait_s:.0f} s (OpenAi.deadline_s)", False
        return RequestError(text, passing=passing, wait_s=wait_s)

    def _said(self, error: APIStatusError) -> str:
        """The server's error text, with the key masked."""
        said = error.body
        if isinstance(said, dict):
            said = cast("dict[str, object]", said).get("message") or error.message
        text = str(said or "").strip() or "nothing said"
        return (text.replace(self._key, "***") if self._key else text)[:SHOWN]

    def _mend(self, status: int, said: str) -> str:
        config = self._config
        if status in (401, 403):
            where = "set OpenAi.key_env" if config.key_env is None else f"check the key in {config.key_env}"
            return f"{where}, and that it may use the model {config.model}"
        if status == 404:
            return f"check OpenAi.base_url (mostly it ends in /v1), OpenAi.model (now {config.model}) and OpenAi.api"
        if "context" in said.lower() or status == 413:
            return "the prompt is too long for the server's model: lower OpenAi.context_tokens, or read less"
        return "change or leave out what the server does not take, with OpenAi.extra ({'seed': None}) or OpenAi.limit"


def _broken(error: APIConnectionError) -> str:
    cause = error.__cause__ or error
    return f"the connection broke ({type(cause).__name__}: {cause}); check that the server runs there"


def _retry_after_s(header: str) -> float:
    """Seconds of a Retry-After header, a number or a date; 0 for neither."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return 0.0


def _names(text: str) -> list[str]:
    """The names on a list of models; empty where the text is no such list."""
    try:
        return [str(each["id"]) for each in json.loads(text)["data"]]
    except (ValueError, LookupError, TypeError):
        return []


def _is_listed(model: str, name: str) -> bool:
    """Whether a name on a list means a model: "m:latest" has the short form "m", and "*" stands for any text."""
    return name in (model, f"{model}:latest") or "*" in name
