"""An engine for worlds with few different prompts: each next-token distribution is computed once per weight update.

In the quiz a path has 60 prompts out of 64, so that nearly all forward passes of a step repeat an earlier one. The
distributions come from the local engine, and tokens are drawn as it draws them, from the seed of the request.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from bough.engine import Completion, Engine, FinishReason, Local, Request, Sampling
from bough.engine.model import ServedPolicy
from bough.engine.sampler import uniforms
from bough.policy.policy import Policy

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringPrompts:
    """Builds the engine.

    Attributes:
        slots: As in `Local`.
    """

    slots: int = 256

    def build(self, policy: ServedPolicy) -> "RecurringPromptsEngine":
        """An engine over a policy."""
        assert isinstance(policy, Policy)  # of which ServedPolicy is a part
        return RecurringPromptsEngine(Local(slots=self.slots).build(policy), policy.vocab_tokens)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution:
    """Of the next token: cumulative probabilities, log-probabilities, entropy in nats."""

    cumulative: np.ndarray
    logprob: np.ndarray
    entropy: float


class RecurringPromptsEngine:
    """The engine that `RecurringPrompts` configures."""

    def __init__(self, engine: Engine, vocab_tokens: int) -> None:
        self.engine, self.vocab_tokens = engine, vocab_tokens
        self.known: dict[Tokens, Distribution] = {}
        self.used: set[Tokens] = set()
        self.earlier: set[Tokens] = set()
        self.flying: dict[Tokens, asyncio.Task[Distribution]] = {}

    @property
    def policy_version(self) -> int:
        """See `Engine.policy_version`."""
        return self.engine.policy_version

    @property
    def context_tokens(self) -> int:
        """See `Engine.context_tokens`."""
        return self.engine.context_tokens

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`. A distribution is computed with all of those that the weights before have used."""
        sampling = request.sampling
        if (sampling.temperature, sampling.top_p, sampling.top_probs) != (1.0, 1.0, 0):
            return await self.engine.generate(request)
        seed = np.asarray([request.seed % 2**64], dtype=np.uint64)
        tokens, logprobs, entropies = list[int](), list[float](), list[float]()
        while len(tokens) < sampling.max_tokens and (not tokens or tokens[-1] not in request.stop_tokens):
            given = await self._next((*request.prompt_tokens, *tokens))
            uniform = float(uniforms(seed, np.asarray([len(tokens)]))[0]) * given.cumulative[-1]
            token = min(int(np.searchsorted(given.cumulative, uniform, side="right")), self.vocab_tokens - 1)
            tokens.append(token)
            logprobs.append(float(given.logprob[token]))
            entropies.append(given.entropy)
        return Completion(
            tokens=tuple(tokens),
            logprobs=tuple(logprobs),
            entropies=tuple(entropies) if sampling.entropies else None,
            finish=FinishReason.STOP if tokens[-1] in request.stop_tokens else FinishReason.LENGTH,
            policy_version=self.policy_version,
        )

    async def _next(self, prefix: Tokens) -> Distribution:
        self.used.add(prefix)
        if prefix in self.known:
            return self.known[prefix]
        for each in {prefix, *self.earlier}:
            if each not in self.known and each not in self.flying:
                self.flying[each] = asyncio.create_task(self._compute(each))
        self.earlier.clear()
        return await self.flying[prefix]

    async def _compute(self, prefix: Tokens) -> Distribution:
        sampling = Sampling(max_tokens=1, top_probs=self.vocab_tokens)
        request = Request(prompt_tokens=prefix, sampling=sampling, stop_tokens=(), seed=0)
        listed = (await self.engine.generate(request)).top_probs
        assert listed is not None
        probability = np.zeros(self.vocab_tokens)
        for token, share in listed[0]:
            probability[token] = share
        with np.errstate(divide="ignore"):
            logprob = np.log(probability)
        entropy = -float(np.sum(probability * np.where(probability > 0, logprob, 0.0)))
        found = Distribution(cumulative=np.cumsum(probability), logprob=logprob, entropy=entropy)
        self.known[prefix] = found
        del self.flying[prefix]
        return found

    async def score(
        self, prompt_tokens: Tokens, continuation_tokens: Tokens, temperature: float = 1.0
    ) -> tuple[float, ...]:
        """See `Engine.score`."""
        return await self.engine.score(prompt_tokens, continuation_tokens, temperature)

    async def score_each(
        self, prompt_tokens: Tokens, continuations: Sequence[Tokens], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """See `Engine.score_each`."""
        return await self.engine.score_each(prompt_tokens, continuations, temperature)

    def load_weights(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        """See `Engine.load_weights`."""
        self.engine.load_weights(weights, policy_version)
        self._drop()

    def reset_cache(self) -> None:
        """See `Engine.reset_cache`."""
        self.engine.reset_cache()
        self._drop()

    def _drop(self) -> None:
        # `reset_cache` may follow `load_weights`, with nothing computed between them.
        self.earlier = self.used or self.earlier
        self.known, self.used = {}, set()

    async def close(self) -> None:
        """See `Engine.close`."""
        for task in self.flying.values():
            task.cancel()
        await self.engine.close()
