"""What each slot of the cache holds, token by token: the bookkeeping of generation, without keys and values."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bough.engine import Request

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

FIRST_TOKENS = 128


SHARED_TOKENS = 16
"""Fewer tokens are read anew sooner than another's are waited for, or shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """Where the beginning of a prompt has been read already.

    Attributes:
        slot: By whom.
        tokens: How much of it.
        soon_tokens: How much of it some slot will have read once it is done with its own prompt, >= `tokens`.
    """

    slot: int
    tokens: int
    soon_tokens: int


class Slots:
    """R rows, one a slot, of up to L tokens; L grows by doubling.

    A slot is busy while it serves a request. What it read stays afterwards, for requests that begin alike, until the
    slot is given away.

    Attributes:
        token: [R, L]; what a slot holds, valid up to `known`. Of a busy slot: prompt and completion so far.
        logprob: [R, L], at sampled tokens.
        entropy: [R, L] nats, at sampled tokens.
        known: [R], how many tokens a slot holds.
        read: [R], how many of them have keys and values, <= `known`.
        start: [R], where the completion begins.
        limit: [R], where it ends at the latest.
        seed: [R] uint64.
        temperature: [R].
        top_p: [R].
        top_probs: [R], how many of the most likely tokens a request is told at each place.
        stop: [R, S], stop tokens, padded with -1.
        busy: [R] bool.
    """

    def __init__(self, *, rows: int, most_tokens: int) -> None:
        """Make R = `rows` empty slots that may grow to L = `most_tokens`."""
        self._most_tokens = most_tokens
        length = min(FIRST_TOKENS, most_tokens)
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
        self.stop: Ints = np.full((rows, 1), -1, dtype=np.int64)
        self.busy: NDArray[np.bool_] = np.zeros(rows, dtype=np.bool_)
        # When each slot was last released, counted in releases; 0 of a slot never used.
        self._released: Ints = np.zeros(rows, dtype=np.int64)
        self._releases = 0

    def find(self, prompt: Ints) -> Reuse:
        """Who read most of `prompt`. Its last token never counts: it is always read anew, for what comes after it.

        Short beginnings are not shared: each makes every later pass attend in one more part.
        """
        width = min(len(prompt) - 1, self.token.shape[1])
        # A column that never matches ends every row, so that the first mismatch always exists.
        differs = np.ones((len(self.known), width + 1), dtype=np.bool_)
        np.not_equal(self.token[:, :width], prompt[:width], out=differs[:, :width])
        soon = np.minimum(differs.argmax(axis=1), self.known)
        now = np.minimum(soon, self.read)
        # Of equals an idle slot that holds nothing else comes first: it can be taken over without a copy.
        whole = ~self.busy & (self.read == now)
        now[(now < SHARED_TOKENS) & ~whole] = 0
        slot = int((2 * now + whole).argmax())
        return Reuse(slot=slot, tokens=int(now[slot]), soon_tokens=int(soon.max()))

    def choose(self, reuse: Reuse) -> int:
        """The slot to give away: the one reused when nothing of it is lost, else an empty one, else the oldest idle."""
        if not self.busy[reuse.slot] and self.read[reuse.slot] == reuse.tokens:
            return reuse.slot
        return int(np.where(self.busy, np.iinfo(np.int64).max, self._released).argmin())

    def take(self, slot: int, tokens: Ints, reused_tokens: int) -> None:
        """Give an idle slot to a request that reads `tokens`, of which the slot has read the first `reused_tokens`."""
        self._reserve(len(tokens) + 1)
        self.token[slot, : len(tokens)] = tokens
        self.known[slot] = self.start[slot] = self.limit[slot] = len(tokens)
        self.read[slot] = reused_tokens
        self.busy[slot] = True

    def aim(self, slot: int, request: Request) -> None:
        """Say how the completion of a slot just taken is drawn, and where it ends."""
        self.limit[slot] = min(int(self.start[slot]) + request.sampling.max_tokens, self._most_tokens)
        self.seed[slot] = request.seed & 0xFFFF_FFFF_FFFF_FFFF
        self.temperature[slot] = request.sampling.temperature
        self.top_p[slot] = request.sampling.top_p
        self.top_probs[slot] = request.sampling.top_probs
        if (missing := len(request.stop_tokens) - self.stop.shape[1]) > 0:
            self.stop = np.pad(self.stop, ((0, 0), (0, missing)), constant_values=-1)
        self.stop[slot] = -1
        self.stop[slot, : len(request.stop_tokens)] = request.stop_tokens

    def append(self, slots: Ints, token: Ints, logprob: Floats, entropy: Floats) -> NDArray[np.bool_]:
        """Add one sampled token to each of `slots`, [B] each; tells which of them are complete."""
        at = self.known[slots]
        self._reserve(int(at.max()) + 1)
        self.token[slots, at] = token
        self.logprob[slots, at] = logprob
        self.entropy[slots, at] = entropy
        self.known[slots] = at + 1
        return (self.stop[slots] == token[:, None]).any(axis=1) | (at + 1 == self.limit[slots])

    def release(self, slot: int) -> None:
        """End a slot's request; what was read stays."""
        self._releases += 1
        self._released[slot] = self._releases
        self.known[slot] = self.read[slot]
        self.busy[slot] = False

    def idle(self) -> Ints:
        """The slots that serve no one but hold something, oldest first."""
        slots = np.flatnonzero(~self.busy & (self.known > 0))
        return slots[np.argsort(self._released[slots])]

    def clear(self, slot: int) -> None:
        """Forget what an idle slot holds."""
        self.known[slot] = self.read[slot] = self._released[slot] = 0

    def _reserve(self, tokens: int) -> None:
        length = self.token.shape[1]
        if tokens > length:
            more = ((0, 0), (0, min(max(2 * length, tokens), self._most_tokens) - length))
            self.token = np.pad(self.token, more)
            self.logprob = np.pad(self.logprob, more)
            self.entropy = np.pad(self.entropy, more)
