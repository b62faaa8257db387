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

from bough.engine.attention import PagedAttention, attention_for
from bough.engine.engine import Completion, EngineFault, FinishReason, Request
from bough.engine.grammar_matcher import GrammarMatcher
from bough.engine.kv_cache import KVCache
from bough.engine.local import Local
from bough.engine.model import Attend, Model
from bough.engine.page_runs import ragged
from bough.engine.pages import PAGE_TOKENS, Pages
from bough.engine.sampler import log_distribution, sample, uniforms
from bough.engine.slots import SHARED_TOKENS, Floats, Ints, Reuse, Slots

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
        self._make_attention = attention_for(model)
        self.running: dict[int, Generate | Score] = {}
        self.policy_version = 0
        self.context_tokens = config.context_of(model.context_tokens)
        self.stats = Stats()
        self.reset()

    @property
    def room(self) -> int:
        """The number of jobs that can be admitted now."""
        most = 1 if self._config.deterministic else self._config.slots
        return 0 if self._full else most - len(self.running)

    @property
    def cache_tokens(self) -> int:
        """Most tokens in the KV cache."""
        return self._pages.max_pages * PAGE_TOKENS

    @property
    def cached_tokens(self) -> int:
        """The tokens for which memory is allocated."""
        return self._cache.tokens

    def reset(self) -> None:
        """Drop all jobs and the KV cache."""
        self.running.clear()
        self._full = False
        slots, limit = self._config.slots, self._config.cache_tokens
        pages = slots * -(-self.context_tokens // PAGE_TOKENS) if limit is None else limit // PAGE_TOKENS
        self._slots = Slots(rows=slots, max_tokens=self.context_tokens)
        self._pages = Pages(rows=slots, max_pages=pages)
        self._cache = KVCache(self._model)
        # Slots, page changes and attention of the last pass, if every slot decoded.
        self._decoded: tuple[Ints, int, PagedAttention] | None = None

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
        reuse = self._slots.find(prompt)
        if reuse.soon_tokens - reuse.tokens >= SHARED_TOKENS:
            return False
        slot = self._slots.choose(reuse)
        most = len(job.tokens) + (job.request.sampling.max_tokens if isinstance(job, Generate) else 0)
        end = min(most, self.context_tokens)
        reused = self._reusable(reuse, slot, end)
        if reused is None:
            self._full = True
            return False
        read = int(self._slots.read[slot])
        if slot == reuse.slot:
            self._pages.cut(slot, reused, read)
        else:
            self._pages.cut(slot, 0, read)
            self._pages.share(slot, reuse.slot, reused)
        self._slots.take(slot, job.tokens, reused)
        if isinstance(job, Generate):
            self._slots.aim(slot, job.request)
        self.running[slot] = job
        # Reserve the maximum number of pages: a running request never waits for memory.
        self._evict(self._pages.missing(slot, end))
        self._pages.extend(slot, end)
        self._cache.reserve(len(self._pages.readers) * PAGE_TOKENS)
        self.stats.prompt_tokens += len(job.tokens)
        self.stats.cached_prompt_tokens += reused
        return True

    def _reusable(self, reuse: Reuse, slot: int, end: int) -> int | None:
        """The number of tokens that a job of length `end` can share; None when it must wait for free pages."""
        pages = self._pages
        whole = slot == reuse.slot and self._slots.read[slot] == reuse.tokens
        missing = max(-(-(end - (int(pages.end[slot]) if whole else reuse.tokens)) // PAGE_TOKENS), 0)
        if pages.used + missing <= pages.max_pages:
            return reuse.tokens
        kept = [pages.held(other, int(pages.end[other])) for other in self.running]
        needed = np.unique(np.concatenate([*kept, pages.held(reuse.slot, reuse.tokens)]))
        if len(needed) + missing <= pages.max_pages:
            return reuse.tokens
        # An idle cache has pages for the job without sharing.
        return None if self.running else 0

    def _evict(self, missing: int) -> None:
        """Evict idle slots, the oldest first, until `missing` pages are free."""
        most = self._pages.max_pages - missing
        for slot in self._slots.idle().tolist() if self._pages.used > most else ():
            self._pages.cut(slot, 0, 0)
            self._slots.clear(slot)
            if self._pages.used <= most:
                return

    def drop(self, job: Generate | Score) -> None:
        """Free the slot of a job, if it has one."""
        for slot in [slot for slot, other in self.running.items() if other is job]:
            self._leave(slot)

    @torch.inference_mode()
    def step(self) -> None:
        """Run one forward pass. At least one job must be running."""
        slots, count = self._next_pieces()
        first = self._slots.read[slots]
        row, offset = ragged(count)
        position = first[row] + offset
        ends = np.cumsum(count)
        scoring = self._slots.limit[slots] == self._slots.start[slots]
        sampling = ~scoring & (first + count == self._slots.known[slots])
        last = ends[sampling] - 1
        attention = self._attention(slots, first, count)
        wanted: Tensor | None = None
        attend: Attend | None = None
        if 0 < 2 * len(last) <= len(row) and not scoring.any():
            wanted = self._put(last)
            few, attend = attention.last(slots[sampling], position[last], last)
            self._decoded = (slots[sampling], self._pages.changes, few)
        hidden = self._model.hidden(
            self._put(self._slots.token[slots[row], position]), self._put(position), attention, wanted, attend
        )
        self._slots.read[slots] += count
        self.stats.passes += 1
        self.stats.sequences += len(slots)
        for slot, end, width in zip(*(x[scoring].tolist() for x in (slots, ends, count)), strict=True):
            self._score(slot, hidden[end - width : end])
        if sampling.any():
            if wanted is None and len(last) < len(hidden):
                hidden = hidden[self._put(last)]
            self._sample(slots[sampling], hidden)

    def _attention(self, slots: Ints, first: Ints, count: Ints) -> PagedAttention:
        """The attention of the next pass: the last pass's, advanced, where every slot adds one token."""
        decodes = bool((count == 1).all())
        if decodes and self._decoded is not None:
            before, changes, attention = self._decoded
            if changes == self._pages.changes and np.array_equal(before, slots) and attention.advance():
                return attention
        attention = self._make_attention(self._cache, self._pages, slots, first, count)
        self._decoded = (slots, self._pages.changes, attention) if decodes else None
        return attention

    def _next_pieces(self) -> tuple[Ints, Ints]:
        """[B] slots, and the number of tokens that each computes."""
        slots = np.fromiter(self.running, dtype=np.int64, count=len(self.running))
        count = self._slots.known[slots] - self._slots.read[slots]
        # Single tokens always run; prompts share the token limit in order of arrival.
        long = np.where(count > 1, count, 0)
        count = np.minimum(count, np.maximum(self._config.prefill_tokens - (np.cumsum(long) - long), count == 1))
        return slots[count > 0], count[count > 0]

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
        job, pages = self.running[slot], self._pages
        held = pages.held(slot, int(pages.end[slot]))
        own = held[pages.readers[held] == 1]
        self._cache.clear(self._put((own[:, None] * PAGE_TOKENS + np.arange(PAGE_TOKENS)).ravel()))
        self._leave(slot)
        pages.cut(slot, 0, int(self._slots.read[slot]))
        self._slots.clear(slot)
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
        read = int(self._slots.read[slot])
        self._pages.cut(slot, read, read)
        self._full = False

    def _put(self, array: Ints | Floats | NDArray[np.bool_]) -> Tensor:
        return torch.as_tensor(array, device=self._model.device)
