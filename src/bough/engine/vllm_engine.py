"""Generation by a vLLM server: requests, completions and scores."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import httpx2
from pydantic import BaseModel, Field, ValidationError
from torch import Tensor

from bough.engine.engine import Completion, EngineFault, FinishReason, Request, refuse_grammar
from bough.engine.vllm import Vllm
from bough.engine.vllm_server import VllmServer
from bough.varying import constant

if TYPE_CHECKING:
    from bough.engine.model import ServedPolicy

FINISHES = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH, "abort": FinishReason.ABORTED}
"""The finish reason for each `finish_reason` of vLLM."""

SEEDS = 2**63
"""Upper bound of vLLM's seeds."""

PATH = "/inference/v1/generate"
"""vLLM's endpoint of token ids in and out."""


class _Scored(BaseModel):
    """A token and its log-probability; vLLM sends -9999 for impossible tokens."""

    token_id: int = -1
    logprob: float


class _Sampled(_Scored):
    """A sampled token, with the most likely ones at its position."""

    top_logprobs: list[_Scored] = Field(default_factory=list[_Scored])


class _Logprobs(BaseModel):
    content: list[_Sampled] | None = None


class _Span(BaseModel):
    """The version that sampled a part of the tokens."""

    version: int


class _Choice(BaseModel):
    finish_reason: str | None = None
    token_ids: list[int] = Field(default_factory=list[int])
    logprobs: _Logprobs | None = None
    weight_versions: list[_Span] | None = None


class _Answer(BaseModel):
    """The fields of an answer that are read."""

    choices: list[_Choice] = Field(min_length=1)
    prompt_logprobs: list[dict[int, _Scored] | None] | None = None


class VllmEngine:
    """The engine that `Vllm` configures. It may be used in several event loops, one after the other."""

    def __init__(self, config: Vllm, python: str, policy: "ServedPolicy") -> None:
        """Start a server, see `Vllm.build`."""
        self._config = config
        self._context_tokens = config.context_of(policy.context_tokens)
        self._policy_version = 0
        self._server = VllmServer(config, python, policy)
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flying = Counter[str]()
        self._since = 0.0
        self._busy_s = 0.0
        self._closed = False

    @property
    def policy_version(self) -> int:
        """The number of weight updates of the weights."""
        return self._policy_version

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together."""
        return self._context_tokens

    @property
    def updates_in_flight(self) -> bool:
        """See `InFlightUpdates`."""
        return self._config.updates_in_flight

    @property
    def loads_adapters(self) -> bool:
        """See `AdapterLoading`."""
        return self._config.adapters

    @property
    def sleeps(self) -> bool:
        """See `Sleeping`."""
        return self._config.sleeps

    @property
    def pid(self) -> int | None:
        """The process id of the server."""
        return self._server.pid

    @property
    def replaced(self) -> int:
        """Number of servers that died or hung and were replaced."""
        return self._server.number - 1

    @property
    def busy_s(self) -> float:
        """Total seconds in which a request was in flight."""
        return self._busy_s + (time.monotonic() - self._since if self._flying else 0.0)

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`. Seeds count modulo 2**63. Cancelling the call ends the request in the server.

        The completion has the version of its first token, the oldest. With adapters all tokens have it.

        Raises:
            ValueError: when the prompt leaves no room for a token, or for top_probs or a grammar.
            EngineFault: when the server fails or answers what is none; a dead or hung server is replaced.
        """
        prompt, sampling = request.prompt_tokens, request.sampling
        refuse_grammar(request, "Vllm")
        if not 0 < len(prompt) < self._context_tokens:
            raise ValueError(
                f"generate: got a prompt of {len(prompt)} tokens; need at least 1 and fewer than the context of "
                f"{self._context_tokens} tokens; read less (a Window context), or raise Vllm.context_tokens up to the "
                "model's limit"
            )
        if sampling.top_probs:
            raise ValueError(
                f"Sampling.top_probs: got {sampling.top_probs} with engine=Vllm, whose log-probabilities are those of "
                "the sampled distribution; need engine=Local"
            )
        entropies, newest = sampling.entropies and self._config.entropies, self._policy_version
        answer = await self._ask(
            prompt,
            max_tokens=min(sampling.max_tokens, self._context_tokens - len(prompt)),
            temperature=constant(sampling.temperature),
            top_p=sampling.top_p,
            seed=request.seed % SEEDS,
            stop_token_ids=list(request.stop_tokens),
            logprobs=-1 if entropies else 0,
        )
        choice = answer.choices[0]
        finish = FINISHES.get(choice.finish_reason or "")
        sampled = (choice.logprobs.content if choice.logprobs else None) or []
        tokens = tuple(choice.token_ids)
        if finish is None or len(sampled) != len(tokens) or not (tokens or finish is FinishReason.ABORTED):
            raise EngineFault(
                f"vLLM answered {len(tokens)} tokens with {len(sampled)} log-probabilities, finished "
                f"{choice.finish_reason!r}; need as many of both, at least one, and one of {list(FINISHES)}"
            )
        greedy, spans = sampling.temperature == 0, choice.weight_versions
        return Completion(
            tokens=tokens,
            logprobs=tuple(0.0 if greedy else each.logprob for each in sampled),
            entropies=tuple(0.0 if greedy else _entropy(each) for each in sampled) if entropies else None,
            finish=finish,
            # A request names its adapters, but other weights may be updated before its first token.
            policy_version=newest if self.loads_adapters or not spans else spans[0].version,
        )

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        """See `Engine.score`; vLLM scores at temperature 1 only.

        Raises:
            ValueError: for another temperature, an empty prompt or continuation, or more tokens than the context has.
            EngineFault: as of `generate`.
        """
        if temperature != 1:
            raise ValueError(f"score: got temperature {temperature}; need 1, as vLLM scores at temperature 1 only")
        if not prompt_tokens or not continuation_tokens:
            raise ValueError(
                f"score: got a prompt of {len(prompt_tokens)} and a continuation of {len(continuation_tokens)} tokens; "
                "need at least 1 of each"
            )
        tokens = (*prompt_tokens, *continuation_tokens)
        if len(tokens) >= self._context_tokens:
            raise ValueError(
                f"score: got {len(tokens)} tokens; need fewer than the context of {self._context_tokens} tokens"
            )
        answer = await self._ask(tokens, max_tokens=1, temperature=1.0, prompt_logprobs=0)
        scored = (answer.prompt_logprobs or [])[len(prompt_tokens) :]
        found = [each[token].logprob for each, token in zip(scored, continuation_tokens, strict=False) if each]
        if len(found) != len(continuation_tokens):
            raise EngineFault(f"vLLM scored {len(found)} of {len(continuation_tokens)} tokens; need all")
        return tuple(found)

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """See `Engine.score_each`; the continuations are scored concurrently."""
        return tuple(await asyncio.gather(*(self.score(prompt_tokens, each, temperature) for each in continuations)))

    def load_weights(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        """See `Engine.load_weights`; completions may be in flight, unless `updates_in_flight` is False.

        Raises:
            RuntimeError: when requests are in flight and may not.
            ValueError: when names or shapes differ from the model's; the engine keeps the old weights.
            EngineFault: when the server fails, and a new one does too.
        """
        self._settled(f"load_weights: got weights of version {policy_version}", allowed=self.updates_in_flight)
        self._server.load(weights, policy_version, in_use=self._flying.keys())
        self._policy_version = policy_version

    def reset_cache(self) -> None:
        """See `Engine.reset_cache`; the keys and values of completions in flight are computed again.

        Raises:
            RuntimeError: when requests are in flight and may not.
            EngineFault: when the server fails, and a new one does too.
        """
        self._settled("reset_cache: called", allowed=self.updates_in_flight)
        self._server.drop_cache()

    def sleep(self) -> None:
        """See `Sleeping.sleep`.

        Raises:
            RuntimeError: when requests are in flight.
            EngineFault: when the server fails, and a new one does too.
        """
        if self.sleeps:
            self._settled("sleep: called", allowed=False)
            self._server.sleep()

    def wake(self) -> None:
        """See `Sleeping.wake`.

        Raises:
            EngineFault: when the server fails, and a new one does too.
        """
        if self.sleeps:
            self._server.wake()

    async def close(self) -> None:
        """See `Engine.close`. Requests in flight fail with an `EngineFault`."""
        self._closed = True
        if self._client is not None and self._loop is asyncio.get_running_loop():
            await self._client.aclose()
        self._client = None
        self._server.close()

    def _settled(self, call: str, *, allowed: bool) -> None:
        if self._flying and not allowed:
            raise RuntimeError(
                f"{call} with {self._flying.total()} requests in flight; need none; await or cancel them first"
            )

    async def _ask(self, tokens: Sequence[int], **sampling: object) -> _Answer:
        """Post a request.

        Raises:
            EngineFault: when the server refuses it, fails, or answers what is none.
        """
        if self._closed:
            raise EngineFault("the engine is closed; build a new one")
        always = {"ignore_eos": True, "detokenize": False}
        number, model = self._server.number, self._server.served
        body = {"model": model, "token_ids": list(tokens), "sampling_params": always | sampling}
        if not self._flying:
            self._since = time.monotonic()
        self._flying[model] += 1
        try:
            response = await self._connected().post(PATH, json=body)
        except httpx2.HTTPError as error:
            log = await self._mend(number)
            raise EngineFault(f"the vLLM server did not answer ({type(error).__name__}: {error}). {log}") from error
        finally:
            self._flying -= Counter([model])
            if not self._flying:
                self._busy_s += time.monotonic() - self._since
        if not response.is_success:
            log = await self._mend(number) if response.status_code >= 500 else ""
            raise EngineFault(f"the vLLM server answered status {response.status_code}: {response.text[:300]}. {log}")
        try:
            return _Answer.model_validate_json(response.content)
        except ValidationError as error:
            raise EngineFault(f"the vLLM server answered what is no completion: {error}") from error

    async def _mend(self, number: int) -> str:
        """Replace the server of a failed request, unless it is in order; returns the end of its log."""
        if self._closed or await asyncio.to_thread(lambda: self._server.number == number and self._server.alive):
            return ""
        return await asyncio.to_thread(self._server.replace, number, "it died or hung")

    def _connected(self) -> httpx2.AsyncClient:
        """The client of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop = loop
            self._client = httpx2.AsyncClient(
                transport=httpx2.AsyncHTTPTransport(
                    # The server closes idle connections after 5 s, and a request that it meets there fails.
                    uds=str(self._server.socket),
                    limits=httpx2.Limits(max_connections=None, keepalive_expiry=1.0),
                ),
                base_url="http://vllm",
                timeout=self._config.deadline_s,
            )
        return self._client


def _entropy(sampled: _Sampled) -> float:
    """The entropy of the distribution at a token, nats: minus the sum of p log p."""
    seen = {each.token_id: each.logprob for each in (sampled, *sampled.top_logprobs)}
    return math.fsum(-math.exp(logprob) * logprob for logprob in seen.values())
