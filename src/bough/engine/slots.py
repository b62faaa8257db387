"""Tokens, sampling settings and state of each slot, without keys and values."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bough.engine.engine import Request
from bough.varying import constant

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

FIRST_TOKENS = 128


SHARED_TOKENS = 16
"""Shortest shared prefix; shorter prefixes are recomputed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """The longest prefix of a prompt in the KV cache.

    Attributes:
        slot: The slot that holds it.
        tokens: Its length.
        soon_tokens: Its length once all slots have computed their own prompts, >= `tokens`.
    """

    slot: int
    tokens: int
    soon_tokens: int


class Slots:
    """R rows, one per slot, of up to L tokens; L grows by doubling.

    A slot is busy while it serves a request. Its keys and values stay afterwards, for requests with the same prefix,
    until the slot gets another request.

    Attributes:
        token: [R, L]; prompt and completion so far, valid up to `known`.
        logprob: [R, L], at sampled tokens.
        entropy: [R, L] nats, at sampled tokens.
        known: [R], the number of tokens of a slot.
        read: [R], the number of them in the KV cache, <= `known`.
        start: [R], the position at which the completion begins.
        limit: [R], the last position at which it may end.
        seed: [R] uint64.
        temperature: [R].
        top_p: [R].
        top_probs: [R], the number of most likely tokens to return at each position.
        restricted: [R] bool, whether a grammar restricts the completion.
        stop: [R, S], stop tokens, padded with -1.
        busy: [R] bool.
    """

    def __init__(self, *, rows: int, max_tokens: int) -> None:
        """Make R = `rows` empty slots that may grow to L = `max_tokens`."""
        self._max_tokens = max_tokens
        length = min(FIRST_TOKENS, max_tokens)
        self.token: Ints = np.zeros((rows, length), dtype=np.int64)
        self.logprob: Floats = np.zeros((rows, length))
        self.entropy: Floats = np.zeros((rows, length))
        self.known: Ints = np.zeros(rows, dtype=np.int64)
        self.read: Ints = np.zeros(rows, dtype=np.int64)
        self.start: Ints = np.zeros(rows, dtype=np.int64)
        self.limit: Ints = np.zeros(rows, dtype=np.int64)
        self.seed: NDArray[np.uint64] = np.zeros(rows, dtype=np.uint64)
        self.temperature: Floats = np.ones(rows)
        self.top_p: Floats = np.ones(rows)
        self.top_probs: Ints = np.zeros(rows, dtype=np.int64)
        self.restricted: NDArray[np.bool_] = np.zeros(rows, dtype=np.bool_)
        self.stop: Ints = np.full((rows, 1), -1, dtype=np.int64)
        self.busy: NDArray[np.bool_] = np.zeros(rows, dtype=np.bool_)
        # When each slot was last released, counted in releases; 0 of a slot never used.
        self._released: Ints = np.zeros(rows, dtype=np.int64)
        self._releases = 0

    def find(self, prompt: Ints) -> Reuse:
        """The slot with the longest prefix of `prompt`. The last token never counts: its logits must be computed.

        Short prefixes are not shared: each adds a run of pages to every later pass.
        """
        width = min(len(prompt) - 1, self.token.shape[1])
        # A column that never matches ends every row, so that the first mismatch always exists.
        differs = np.ones((len(self.known), width + 1), dtype=np.bool_)
        np.not_equal(self.token[:, :width], prompt[:width], out=differs[:, :width])
        soon = np.minimum(differs.argmax(axis=1), self.known)
        now = np.minimum(soon, self.read)
        # Among equals, prefer an idle slot that holds only this prefix: its pages can be reused.
        whole = ~self.busy & (self.read == now)
        now[(now < SHARED_TOKENS) & ~whole] = 0
        slot = int((2 * now + whole).argmax())
        return Reuse(slot=slot, tokens=int(now[slot]), soon_tokens=int(soon.max()))

    def choose(self, reuse: Reuse) -> int:
        """The slot for a request: the reused slot if it loses no token, else an empty one, else the oldest idle."""
        if not self.busy[reuse.slot] and self.read[reuse.slot] == reuse.tokens:
            return reuse.slot
        return int(np.where(self.busy, np.iinfo(np.int64).max, self._released).argmin())

    def take(self, slot: int, tokens: Ints, reused_tokens: int) -> None:
        """Assign an idle slot to a request of `tokens`, whose first `reused_tokens` are in the KV cache."""
        self._reserve(len(tokens) + 1)
        self.token[slot, : len(tokens)] = tokens
        self.known[slot] = self.start[slot] = self.limit[slot] = len(tokens)
        self.read[slot] = reused_tokens
        self.busy[slot] = True

    def aim(self, slot: int, request: Request) -> None:
        """Set the sampling and the end of the completion of a slot just taken."""
        self.limit[slot] = min(int(self.start[slot]) + request.sampling.max_tokens, self._max_tokens)
        self.seed[slot] = request.seed & 0xFFFF_FFFF_FFFF_FFFF
        self.temperature[slot] = constant(request.sampling.temperature)
        self.top_p[slot] = request.sampling.top_p
        self.top_probs[slot] = request.sampling.top_probs
        self.restricted[slot] = request.grammar is not None
        if (missing := len(request.stop_tokens) - self.stop.shape[1]) > 0:
            self.stop = np.pad(self.stop, ((0, 0), (0, missing)), constant_values=-1)
        self.stop[slot] = -1
        self.stop[slot, : len(request.stop_tokens)] = request.stop_tokens

    def append(self, slots: Ints, token: Ints, logprob: Floats, entropy: Floats) -> NDArray[np.bool_]:
        """Add one sampled token to each of `slots`, [B] each; return which of them are complete."""
        at = self.known[slots]
        self._reserve(int(at.max(initial=0)) + 1)
        self.token[slots, at] = token
        self.logprob[slots, at] = logprob
        self.entropy[slots, at] = entropy
        self.known[slots] = at + 1
        return (self.stop[slots] == token[:, None]).any(axis=1) | (at + 1 == self.limit[slots])

    def release(self, slot: int) -> None:
        """End a slot's request; its keys and values stay."""
        self._releases += 1
        self._released[slot] = self._releases
        self.known[slot] = self.read[slot]
        self.busy[slot] = False

    def idle(self) -> Ints:
        """The slots without a request but with keys and values, oldest first."""
        slots = np.flatnonzero(~self.busy & (self.known > 0))
        return slots[np.argsort(self._released[slots])]

    def clear(self, slot: int) -> None:
        """Empty an idle slot."""
        self.known[slot] = self.read[slot] = self._released[slot] = 0

    def _reserve(self, tokens: int) -> None:
        length = self.token.shape[1]
        if tokens > length:
            more = ((0, 0), (0, min(max(2 * length, tokens), self._max_tokens) - length))
            self.token = np.pad(self.token, more)
            self.logprob = np.pad(self.logprob, more)
            self.entropy = np.pad(self.entropy, more)
