"""The local engine: an asyncio interface to the decoder.

    generate, score --> waiting --admit--> running --step, step, ...--> result

One task, the pump, steps the decoder while there is work. The event loop runs in between, so that the next turns of
finished branches join the next pass.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from bough.engine.decoder import Decoder, Generate, Score, Stats
from bough.engine.engine import LEAST_TEMPERATURE, Completion, EngineFault, Request
from bough.engine.grammar_matcher import GrammarMatcher, GrammarMatchers
from bough.engine.local import Local
from bough.engine.model import Model
from bough.engine.slots import Ints
from bough.grammar import Grammar

ROUNDS = 4
"""Iterations of the event loop between two passes: the reply of an environment's worker process needs three."""


class LocalEngine:
    """The engine that `Local` configures."""

    def __init__(self, config: Local, model: Model) -> None:
        """Take over a model; no other object may change its weights."""
        self._config = config
        self._vocab_tokens = model.vocab_tokens
        self._decoder = Decoder(config, model)
        self._grammars = GrammarMatchers(model.tokenizer, model.vocab_tokens)
        self._waiting: dict[Generate | Score, None] = {}
        self._pump: asyncio.Task[None] | None = None
        self._closed = False
        self.busy_s = 0.0
        """Total seconds of passes."""

    @property
    def policy_version(self) -> int:
        """The number of weight updates of the weights."""
        return self._decoder.policy_version

    @property
    def context_tokens(self) -> int:
        """Most tokens of prompt and completion together."""
        return self._decoder.context_tokens

    @property
    def cache_tokens(self) -> int:
        """Most tokens in the KV cache."""
        return self._decoder.cache_tokens

    @property
    def cached_tokens(self) -> int:
        """The tokens for which memory is allocated."""
        return self._decoder.cached_tokens

    @property
    def passes(self) -> int:
        """Forward passes since the engine was built."""
        return self.stats.passes

    @property
    def sequences(self) -> int:
        """Sequences in these passes, each counted in every pass that computes it."""
        return self.stats.sequences

    @property
    def stats(self) -> Stats:
        """Counts since the engine was built; a copy."""
        return replace(self._decoder.stats)

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`. Seeds count modulo 2**64. Cancelling the call frees its slot."""
        prompt = self._tokens("generate", "prompt", request.prompt_tokens)
        if len(prompt) >= self.context_tokens:
            raise ValueError(
                f"generate: got a prompt of {len(prompt)} tokens; need fewer than the context of {self.context_tokens} "
                "tokens; read less (a Window context), or raise Local.context_tokens up to the model's limit"
            )
        self._check_room("generate", min(len(prompt) + request.sampling.max_tokens, self.context_tokens))
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        job = Generate(tokens=prompt, request=request, future=future, matcher=self._matcher(request))
        await self._submit(job)
        return future.result()

    async def compile_grammar(self, grammar: Grammar, stop_tokens: Sequence[int]) -> None:
        """See `CompilesGrammars.compile_grammar`."""
        await self._grammars.compile(grammar, stop_tokens)

    async def score(
        self, prompt_tokens: tuple[int, ...], continuation_tokens: tuple[int, ...], temperature: float = 1.0
    ) -> tuple[float, ...]:
        """See `Engine.score`.

        Raises:
            ValueError: when prompt and continuation exceed the context, or the temperature is not above 0.
            EngineFault: when the engine fails.
        """
        prompt = self._tokens("score", "prompt", prompt_tokens)
        targets = self._tokens("score", "continuation", continuation_tokens)
        if len(prompt) + len(targets) > self.context_tokens:
            raise ValueError(
                f"score: got a prompt of {len(prompt)} and a continuation of {len(targets)} tokens; need at most "
                f"{self.context_tokens} together, the context; shorten one of them"
            )
        if not temperature >= LEAST_TEMPERATURE:
            raise ValueError(f"score: got temperature {temperature}; need at least {LEAST_TEMPERATURE}")
        self._check_room("score", len(prompt) + len(targets) - 1)
        future: asyncio.Future[tuple[float, ...]] = asyncio.get_running_loop().create_future()
        tokens = np.concatenate([prompt, targets[:-1]])
        await self._submit(Score(tokens=tokens, targets=targets, temperature=temperature, future=future))
        return future.result()

    async def score_each(
        self, prompt_tokens: tuple[int, ...], continuations: Sequence[tuple[int, ...]], temperature: float = 1.0
    ) -> tuple[tuple[float, ...], ...]:
        """See `Engine.score_each`; the continuations share forward passes."""
        return tuple(await asyncio.gather(*(self.score(prompt_tokens, each, temperature) for each in continuations)))

    @property
    def loads_in_thread(self) -> bool:
        """True: `load_weights` copies tensors, and does not use the event loop."""
        return True

    def load_weights(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        """See `Engine.load_weights`.

        Raises:
            RuntimeError: when requests are in flight.
            ValueError: when the weights do not fit the model.
        """
        self._settled(f"load_weights: got weights of version {policy_version}")
        self._decoder.load(weights, policy_version)

    def renew(self, policy_version: int | None) -> None:
        """Drop the KV cache after an in-place change of the weights. None keeps the version.

        Raises:
            RuntimeError: when requests are in flight.
        """
        self.reset_cache()
        if policy_version is not None:
            self._decoder.policy_version = policy_version

    def reset_cache(self) -> None:
        """See `Engine.reset_cache`.

        Raises:
            RuntimeError: when requests are in flight.
        """
        self._settled("reset_cache: called")
        self._decoder.reset()

    def bound_cache(self, tokens: int) -> None:
        """See `Caching.bound_cache`.

        Raises:
            RuntimeError: when requests are in flight.
        """
        self._settled("bound_cache: called")
        if self._config.cache_tokens is None:
            self._decoder.bound_cache(tokens)

    async def close(self) -> None:
        """See `Engine.close`. Requests in flight fail with an `EngineFault`."""
        self._closed = True
        self._fail("the engine was closed")

    def _matcher(self, request: Request) -> GrammarMatcher | None:
        if request.grammar is None:
            return None
        begun = request.prompt_tokens[len(request.prompt_tokens) - request.begun_tokens :]
        return self._grammars.start(request.grammar, request.stop_tokens, begun)

    def _settled(self, call: str) -> None:
        if flying := len(self._waiting) + len(self._decoder.running):
            raise RuntimeError(f"{call} with {flying} requests in flight; need none; await or cancel them first")

    def _check_room(self, call: str, tokens: int) -> None:
        if tokens > self._decoder.cache_tokens:
            raise ValueError(
                f"{call}: got up to {tokens} tokens of prompt and completion; need at most "
                f"{self._decoder.cache_tokens}, the cache's capacity; raise Local.cache_tokens or ask for fewer"
            )

    def _tokens(self, call: str, name: str, tokens: tuple[int, ...]) -> Ints:
        if not tokens:
            raise ValueError(f"{call}: got an empty {name}; need at least one token")
        # Compared as Python's integers: 2**70 is no element of an array.
        least, most = min(tokens), max(tokens)
        if least < 0 or most >= self._vocab_tokens:
            raise ValueError(
                f"{call}: got {name} tokens from {least} to {most}; need 0 to {self._vocab_tokens - 1}, the model's "
                "vocabulary; use the tokenizer of this model"
            )
        return np.asarray(tokens, dtype=np.int64)

    async def _submit(self, job: Generate | Score) -> None:
        if self._closed:
            raise EngineFault("the engine is closed; build a new one")
        self._waiting[job] = None
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run(), name="bough-local-engine")
        try:
            await job.future
        except asyncio.CancelledError:
            self._waiting.pop(job, None)
            self._decoder.drop(job)
            raise

    async def _run(self) -> None:
        try:
            while self._waiting or self._decoder.running:
                begin = time.perf_counter()
                for job in list(islice(self._waiting, self._decoder.room)):
                    if self._decoder.room and self._decoder.admit(job):
                        del self._waiting[job]
                self._decoder.step()
                self.busy_s += time.perf_counter() - begin
                for _ in range(ROUNDS):
                    await asyncio.sleep(0)
        except Exception as error:
            self._fail(self._message(error), error)
        except BaseException:
            self._fail("generation was interrupted")
            raise

    def _message(self, error: Exception) -> str:
        flying = f"{len(self._decoder.running)} requests decoding and {len(self._waiting)} waiting"
        if isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error):
            return (
                f"generation ran out of memory with {flying}: {error}; lower Local.slots (now {self._config.slots}), "
                f"Local.prefill_tokens ({self._config.prefill_tokens}), Local.cache_tokens "
                f"({self._decoder.cache_tokens}) or Local.context_tokens ({self.context_tokens})"
            )
        return f"generation broke with {flying}: {type(error).__name__}: {error}"

    def _fail(self, message: str, cause: Exception | None = None) -> None:
        jobs = [*self._waiting, *self._decoder.running.values()]
        self._waiting.clear()
        self._decoder.reset()
        for job in jobs:
            if not job.future.done():
                # One exception each: its traceback belongs to one caller.
                fault = EngineFault(message)
                fault.__cause__ = cause
                job.future.set_exception(fault)
