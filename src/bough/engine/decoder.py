"""Continuous batching: admits jobs to slots, runs forward passes over all of them, and samples tokens.

A pass computes the next tokens of every busy slot: the sampled token of a decoding slot, else a chunk of its
prompt. A slot whose tokens are all computed samples one token, until its completion ends.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from bough.engine.engine import Completion, EngineFault, FinishReason, Request
from bough.engine.grammar_matcher import GrammarMatcher
from bough.engine.local import Local
from bough.engine.model import Model, SequenceModel
from bough.engine.paged_passes import PagedPasses
from bough.engine.pages import PAGE_TOKENS
from bough.engine.passes import Passes
from bough.engine.sampler import log_distribution, sample, uniforms
from bough.engine.sequence_passes import SequencePasses
from bough.engine.slots import Floats, Ints, Slots

SCORED_NUMBERS = 1 << 24
"""Most log-probabilities held at once while scoring."""


@dataclass(slots=True, kw_only=True, eq=False)
class Generate:
    """A completion job.

    Attributes:
        tokens: The prompt.
        request: The request.
        future: Receives the completion.
        top_probs: The most likely tokens at each position so far, where the request has them.
        matcher: Computes the tokens that the grammar allows next; None without a grammar.
    """

    tokens: Ints
    request: Request
    future: "asyncio.Future[Completion]"
    top_probs: list[tuple[tuple[int, float], ...]] = field(default_factory=list[tuple[tuple[int, float], ...]])
    matcher: GrammarMatcher | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Score:
    """A scoring job.

    Attributes:
        tokens: The prompt, and the continuation without its last token.
        targets: The continuation; it follows the last len(targets) of `tokens`.
        temperature: Divides the logits.
        future: Receives the log-probabilities.
        logprobs: The log-probabilities computed so far.
    """

    tokens: Ints
    targets: Ints
    temperature: float
    future: "asyncio.Future[tuple[float, ...]]"
    logprobs: list[float] = field(default_factory=list[float])


@dataclass(slots=True, kw_only=True)
class Stats:
    """Counts since the engine was built.

    Attributes:
        passes: Forward passes.
        sequences: Sequences in the passes, each counted in every pass that computes it.
        prompt_tokens: Prompt tokens of all jobs.
        cached_prompt_tokens: Prompt tokens found in the KV cache.
        generated_tokens: Sampled tokens.
    """

    passes: int = 0
    sequences: int = 0
    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    generated_tokens: int = 0


class Decoder:
    """Runs jobs in slots through a model.

    Attributes:
        running: The job of each busy slot, in order of admission.
        policy_version: The number of weight updates of the model's weights.
        context_tokens: Most tokens of prompt and completion together.
        stats: Running totals.
    """

    def __init__(self, config: Local, model: Model) -> None:
        """Take over a model; no other object may change its weights."""
        self._config, self._model = config, model
        self.running: dict[int, Generate | Score] = {}
        self.policy_version = 0
        self.context_tokens = config.context_of(model.context_tokens)
        self.stats = Stats()
        self.reset()

    @property
    def room(self) -> int:
        """The number of jobs that can be admitted now."""
        most = 1 if self._config.deterministic else self._config.slots
        return 0 if self._passes.full else most - len(self.running)

    @property
    def cache_tokens(self) -> int:
        """Most tokens in the KV cache."""
        return self._passes.cache_tokens

    @property
    def cached_tokens(self) -> int:
        """The tokens for which memory is allocated."""
        return self._passes.cached_tokens

    def reset(self) -> None:
        """Drop all jobs and the KV cache."""
        self.running.clear()
        self._slots = Slots(rows=self._config.slots, max_tokens=self.context_tokens)
        self._passes = self._make_passes()

    def _make_passes(self) -> Passes:
        config, model, most = self._config, self._model, self.context_tokens
        if model.packs:
            return PagedPasses(config, model, self._slots, most)
        assert isinstance(model, SequenceModel)
        return SequencePasses(config, model, self._slots, most)

    def bound_cache(self, tokens: int) -> None:
        """Limit the cache to `tokens`, rounded up to whole pages. No job may be running."""
        self._config = replace(self._config, cache_tokens=-(-tokens // PAGE_TOKENS) * PAGE_TOKENS)
        self.reset()

    def load(self, weights: Mapping[str, Tensor], policy_version: int) -> None:
        """Copy new weights in. No job may be running."""
        self.reset()
        self._model.load(weights)
        self.policy_version = policy_version

    @torch.inference_mode()
    def admit(self, job: Generate | Score) -> bool:
        """Assign a slot to a job. There must be `room`.

        False when the job must wait: a running job is computing a prefix that it can share, or the cache is full of
        pages that running jobs need. In the second case `room` is 0 until a job ends, so that no job starves.
        """
        if self._config.deterministic:
            # Every job then starts from the same memory, independent of earlier jobs.
            self.reset()
        # The tokens after the prompt must be computed again to be scored.
        prompt = job.tokens if isinstance(job, Generate) else job.tokens[: len(job.tokens) - len(job.targets) + 1]
        most = len(job.tokens) + (job.request.sampling.max_tokens if isinstance(job, Generate) else 0)
        end = min(most, self.context_tokens)
        place = self._passes.place(prompt, end, self.running)
        if place is None:
            return False
        self._slots.take(place.slot, job.tokens, place.reused)
        if isinstance(job, Generate):
            self._slots.aim(place.slot, job.request)
        self.running[place.slot] = job
        self._passes.reserve(place.slot, end)
        self.stats.prompt_tokens += len(job.tokens)
        self.stats.cached_prompt_tokens += place.reused
        return True

    def drop(self, job: Generate | Score) -> None:
        """Free the slot of a job, if it has one."""
        for slot in [slot for slot, other in self.running.items() if other is job]:
            self._leave(slot)

    @torch.inference_mode()
    def step(self) -> None:
        """Run one forward pass. At least one job must be running."""
        slots, count = self._passes.next_pieces(np.fromiter(self.running, dtype=np.int64, count=len(self.running)))
        ends = np.cumsum(count)
        scoring = self._slots.limit[slots] == self._slots.start[slots]
        sampling = ~scoring & (self._slots.read[slots] + count == self._slots.known[slots])
        hidden = self._passes.hidden(slots, count, None if scoring.any() else sampling)
        self._slots.read[slots] += count
        self.stats.passes += 1
        self.stats.sequences += len(slots)
        for slot, end, width in zip(*(x[scoring].tolist() for x in (slots, ends, count)), strict=True):
            self._score(slot, hidden[end - width : end])
        if sampling.any():
            self._sample(slots[sampling], hidden[self._put(ends[sampling] - 1)] if scoring.any() else hidden)

    def _sample(self, slots: Ints, hidden: Float[Tensor, "B W"]) -> None:
        held = self._slots
        uniform = uniforms(held.seed[slots], held.known[slots] - held.start[slots])
        temperature, top_p = held.temperature[slots], held.top_p[slots]
        greedy = temperature == 0
        logits = self._model.logits(hidden)
        self._note_top_probs(slots, logits)
        allowed, faults = self._forbid(slots, logits)
        drawn = sample(
            logits,
            self._put(uniform),
            self._put(np.where(greedy, 1.0, temperature)) if (temperature != 1).any() else None,
            self._put(top_p) if (top_p < 1).any() else None,
            self._put(greedy) if greedy.any() else None,
        )
        # One transfer for all three; float64 holds any token exactly.
        token, logprob, entropy = torch.stack([drawn[0].double(), *drawn[1:]]).cpu().numpy()
        sound = np.isfinite(logprob)
        for slot in slots[~sound].tolist():
            self._break(slot)
        for row, fault in faults.items():
            if sound[row]:
                sound[row] = False
                self._refuse(int(slots[row]), fault)
        for row, (matcher, tokens) in allowed.items():
            if sound[row]:
                matcher.take(int(token[row]), tokens)
        slots = slots[sound]
        complete = held.append(slots, token[sound].astype(np.int64), logprob[sound], entropy[sound])
        self.stats.generated_tokens += len(slots)
        for slot in slots[complete].tolist():
            self._complete(slot)

    def _note_top_probs(self, slots: Ints, logits: Float[Tensor, "B V"]) -> None:
        """Store the most likely tokens of the jobs that request them."""
        wanted = self._slots.top_probs[slots]
        for row in np.flatnonzero(wanted).tolist():
            job = self.running[int(slots[row])]
            assert isinstance(job, Generate)
            best = logits[row].double().softmax(-1).topk(min(int(wanted[row]), self._model.vocab_tokens))
            token, probability = (values.cpu().numpy() for values in (best.indices, best.values))
            job.top_probs.append(tuple((int(t), float(p)) for t, p in zip(token, probability, strict=True)))

    def _forbid(
        self, slots: Ints, logits: Float[Tensor, "B V"]
    ) -> tuple[dict[int, tuple[GrammarMatcher, bytes]], dict[int, ValueError]]:
        """Set the logits of tokens that grammars forbid to -inf.

        Returns:
            By row, the matcher and what it allows; and by row, why a grammar can't be followed further.
        """
        found, faults = dict[int, tuple[GrammarMatcher, bytes]](), dict[int, ValueError]()
        for row in np.flatnonzero(self._slots.restricted[slots]).tolist():
            job = self.running[int(slots[row])]
            assert isinstance(job, Generate) and job.matcher is not None  # noqa: PT018
            try:
                found[row] = job.matcher, job.matcher.next()
            except ValueError as error:
                faults[row] = error
        if found:
            packed = np.frombuffer(b"".join(tokens for _, tokens in found.values()), np.uint8).reshape(len(found), -1)
            bits = np.unpackbits(packed, axis=1, bitorder="little")[:, : self._model.vocab_tokens]
            rows = self._put(np.fromiter(found, dtype=np.int64))
            logits[rows] = logits[rows].masked_fill(self._put(bits == 0), -torch.inf)
        return found, faults

    def _complete(self, slot: int) -> None:
        held, job = self._slots, self.running[slot]
        assert isinstance(job, Generate)
        span = slice(int(held.start[slot]), int(held.known[slot]))
        tokens = tuple(held.token[slot, span].tolist())
        completion = Completion(
            tokens=tokens,
            logprobs=tuple(held.logprob[slot, span].tolist()),
            entropies=tuple(held.entropy[slot, span].tolist()) if job.request.sampling.entropies else None,
            finish=FinishReason.STOP if tokens[-1] in job.request.stop_tokens else FinishReason.LENGTH,
            policy_version=self.policy_version,
            top_probs=tuple(job.top_probs) if job.request.sampling.top_probs else None,
            allowed=None if job.matcher is None else tuple(job.matcher.allowed),
        )
        self._leave(slot)
        # The caller may have been cancelled.
        if not job.future.done():
            job.future.set_result(completion)

    def _score(self, slot: int, hidden: Float[Tensor, "T W"]) -> None:
        """Score the continuation tokens that follow the T tokens just computed."""
        job, read = self.running[slot], int(self._slots.read[slot])
        assert isinstance(job, Score)
        before = max(len(job.tokens) - len(job.targets) - (read - len(hidden)), 0)
        step = max(SCORED_NUMBERS // self._model.vocab_tokens, 1)
        for begin in range(before, len(hidden), step):
            logits = self._model.logits(hidden[begin : begin + step])
            targets = self._put(job.targets[len(job.logprobs) :][: len(logits)])
            temperature = self._put(np.full(len(logits), job.temperature))
            logprob = log_distribution(logits, temperature).gather(-1, targets[:, None])
            job.logprobs.extend(map(float, logprob.flatten().cpu().numpy()))
        if read < len(job.tokens):
            return
        if np.isnan(job.logprobs).any():
            self._break(slot)
            return
        self._leave(slot)
        if not job.future.done():
            job.future.set_result(tuple(job.logprobs))

    def _break(self, slot: int) -> None:
        """Fail the job of a slot whose logits are not finite; no other job gets its keys and values."""
        job = self.running[slot]
        self._passes.scrub(slot)
        self._leave(slot)
        self._passes.discard(slot)
        if not job.future.done():
            job.future.set_exception(EngineFault("the model's logits are not finite; the weights have diverged"))

    def _refuse(self, slot: int, fault: ValueError) -> None:
        """Fail the job of a slot, and no other."""
        future = self.running[slot].future
        self._leave(slot)
        if not future.done():
            future.set_exception(fault)

    def _leave(self, slot: int) -> None:
        del self.running[slot]
        self._slots.release(slot)
        self._passes.leave(slot)

    def _put(self, array: Ints | Floats | NDArray[np.bool_]) -> Tensor:
        return torch.as_tensor(array, device=self._model.device)
