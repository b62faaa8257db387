"""An engine with scripted completions: for tests, examples and dry runs."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from math import exp
from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

from bough.engine.engine import LEAST_TEMPERATURE, Completion, EngineFault, FinishReason, Request
from bough.varying import constant

if TYPE_CHECKING:
    from torch import Tensor


class InjectedFault(StrEnum):
    """Faults that a script can inject."""

    FAULT = "fault"
    """`EngineFault` is raised."""
    ABORTED = "aborted"
    """The completion is empty and finished `ABORTED`."""
    SILENCE = "silence"
    """The request never completes."""


Reply: TypeAlias = Sequence[int] | InjectedFault
"""The tokens of a completion, or an injected fault."""

Script: TypeAlias = Callable[[Request], Reply] | Mapping[tuple[int, ...], Sequence[Reply]]
"""A function of the request, or a mapping from prompts to replies; the request's seed selects one reply."""


class Scripted:
    """An engine with scripted completions, without a model.

    As with a model, a reply is cut after its first stop token, at `max_tokens`, and at the end of the context. A reply
    without a stop token gets the request's first one. Log-probabilities and entropies are artificial but
    consistent: fixed functions of the tokens so far, the token, the temperature and the policy version, so that `score`
    agrees with `generate` and changes after `load_weights`. So are top_probs: the completion's token has the
    probability of its log-probability, the ids after it have half of the rest, a quarter, and so on.

    Examples:
        >>> engine = Scripted(script={(5, 6): [(1, 2), (3,)]})
        >>> request = Request(prompt_tokens=(5, 6), sampling=Sampling(), stop_tokens=(0,), seed=1)
        >>> (await engine.generate(request)).tokens
        (3, 0)

    Attributes:
        requests: Every request so far, in order of arrival.
    """

    def __init__(self, *, script: Script, context_tokens: int = 4096, latency_s: float = 0.0) -> None:
        """Store the script.

        Args:
            script: The completions, or a function of the request.
            context_tokens: Most tokens of prompt and completion together, at least 2.
            latency_s: Seconds per request.
        """
        if context_tokens < 2:
            raise ValueError(f"Scripted.context_tokens: got {context_tokens}; need at least 2")
        if not latency_s >= 0:
            raise ValueError(f"Scripted.latency_s: got {latency_s}; need 0 or more")
        self.requests: list[Request] = []
        self._script, self._context_tokens, self._latency_s = script, context_tokens, latency_s
        self._policy_version = 0
        self._flying = 0
        self._closed = False

    @property
    def policy_version(self) -> int:
        """The version of the last `load_weights`, at first 0."""
        return self._policy_version

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together."""
        return self._context_tokens

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`."""
        prompt_tokens = len(request.prompt_tokens)
        if not 0 < prompt_tokens < self._context_tokens:
            raise ValueError(
                f"generate: got a prompt of {prompt_tokens} tokens; need at least 1 and fewer than the context of "
                f"{self._context_tokens} tokens; read less (a Window context) or raise Scripted.context_tokens"
            )
        self.requests.append(request)
        async with self._in_flight():
            reply = self._reply(request)
            if reply is InjectedFault.SILENCE:
                await asyncio.get_running_loop().create_future()
            if reply is InjectedFault.FAULT:
                raise EngineFault("the script asked for a fault")
            if isinstance(reply, InjectedFault):
                tokens, finish = (), FinishReason.ABORTED
            else:
                tokens, finish = self._cut(request, tuple(reply))
        logprobs, entropies = self._made_up(request.prompt_tokens, tokens, constant(request.sampling.temperature))
        return Completion(
            tokens=tokens,
            logprobs=logprobs,
            entropies=entropies if request.sampling.entropies else None,
            finish=finish,
            policy_version=self._policy_version,
            top_probs=self._others(request, tokens) if request.sampling.top_probs else None,
            allowed=None if request.grammar is None else (None,) * len(tokens),
        )

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        """See `Engine.score`."""
        if not temperature >= LEAST_TEMPERATURE:
            raise ValueError(f"score: got temperature {temperature}; need at least {LEAST_TEMPERATURE}")
        async with self._in_flight():
            return self._made_up(prompt_tokens, continuation_tokens, temperature)[0]

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """See `Engine.score_each`."""
        return tuple([await self.score(prompt_tokens, each, temperature) for each in continuations])

    def load_weights(self, weights: "Mapping[str, Tensor]", policy_version: int) -> None:
        """Store the new version. The weights are ignored.

        Raises:
            RuntimeError: when requests are in flight.
        """
        del weights
        if self._flying:
            raise RuntimeError(
                f"load_weights: got weights of version {policy_version} with {self._flying} requests in flight; need "
                "none; await or cancel them first"
            )
        self._policy_version = policy_version

    def reset_cache(self) -> None:
        """Do nothing: the engine has no cache."""

    async def close(self) -> None:
        """See `Engine.close`."""
        self._closed = True

    @asynccontextmanager
    async def _in_flight(self) -> AsyncGenerator[None, None]:
        if self._closed:
            raise EngineFault("the engine is closed; make a new one")
        self._flying += 1
        try:
            await asyncio.sleep(self._latency_s)
            yield
        finally:
            self._flying -= 1

    def _reply(self, request: Request) -> Reply:
        if callable(self._script):
            return self._script(request)
        replies = self._script.get(request.prompt_tokens, ())
        if not replies:
            raise ValueError(f"Scripted.script: got prompt {request.prompt_tokens}; need one of {list(self._script)}")
        return replies[request.seed % len(replies)]

    def _cut(self, request: Request, reply: tuple[int, ...]) -> tuple[tuple[int, ...], FinishReason]:
        most = min(request.sampling.max_tokens, self._context_tokens - len(request.prompt_tokens))
        tokens = (*reply, *request.stop_tokens[:1])[:most]
        for end, token in enumerate(tokens, start=1):
            if token in request.stop_tokens:
                return tokens[:end], FinishReason.STOP
        if len(tokens) < most:
            raise ValueError(
                f"Scripted.script: got {len(tokens)} tokens for a request without stop tokens; need {most}, where the "
                "completion ends by length"
            )
        return tokens, FinishReason.LENGTH

    def _made_up(
        self, prompt: tuple[int, ...], tokens: tuple[int, ...], temperature: float
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Log-probabilities and entropies of `tokens`: between 0 and -3 or 3 at temperature 1, nearer to 0 below it."""
        # A checksum of all tokens so far, seeded with the version, so that new weights change the values.
        text = self._policy_version
        drawn: list[tuple[float, float]] = []
        for place, token in enumerate((*prompt, *tokens)):
            entropy = 3.0 * temperature * text / 2**32
            text = crc32(token.to_bytes(8, "little"), text)
            if place >= len(prompt):
                drawn.append((-3.0 * temperature * text / 2**32, entropy))
        return tuple(logprob for logprob, _ in drawn), tuple(entropy for _, entropy in drawn)

    def _others(self, request: Request, tokens: tuple[int, ...]) -> tuple[tuple[tuple[int, float], ...], ...]:
        """Top tokens at each position: the token itself and the ids that follow it, the most likely first."""
        logprobs, _ = self._made_up(request.prompt_tokens, tokens, 1.0)
        said: list[tuple[tuple[int, float], ...]] = []
        for token, logprob in zip(tokens, logprobs, strict=True):
            share = [exp(logprob), *((1 - exp(logprob)) / 2**rank for rank in range(1, request.sampling.top_probs))]
            ids = range(token, token + len(share))
            said.append(tuple(sorted(zip(ids, share, strict=True), key=lambda each: -each[1])))
        return tuple(said)
