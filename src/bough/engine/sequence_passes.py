"""Passes of a model's own forward pass, for a model that runs path by path: texts of one length share a batch.

Texts that begin in one pass with prompts of one length have a cache together, and keep one length until they leave. No
text is padded, so layers of any kind compute what they compute for one text. Nothing is shared between texts: a fork
computes its prompt again.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from bough.engine.local import Local
from bough.engine.model import SequenceModel
from bough.engine.passes import Place
from bough.engine.slots import Ints, Slots


@dataclass(slots=True, kw_only=True, eq=False)
class Sequences:
    """Texts of one length with a common cache.

    Attributes:
        slots: [b], the slots of its rows; -1 for one whose job has left.
        cache: transformers' cache.
        tokens: The length of a text.
    """

    slots: Ints
    cache: object
    tokens: int


class SequencePasses:
    """See `Passes`. Without a cache that a model can decode with, each pass computes whole texts."""

    def __init__(self, config: Local, model: SequenceModel, slots: Slots, context_tokens: int) -> None:
        """Make passes without texts."""
        self._config, self._model, self._slots = config, model, slots
        limit = config.slots * context_tokens
        self.cache_tokens = limit if config.cache_tokens is None else min(limit, config.cache_tokens)
        """See `Passes`."""
        self.full = False
        """See `Passes`."""
        self._reserved: dict[int, int] = {}
        self._sequences: list[Sequences] = []

    @property
    def cached_tokens(self) -> int:
        """See `Passes`."""
        return sum(len(each.slots) * each.tokens for each in self._sequences)

    def place(self, prompt: Ints, end: int, running: Collection[int]) -> Place | None:
        """See `Passes`."""
        del prompt, running
        self.full = sum(self._reserved.values()) + end > self.cache_tokens
        return None if self.full else Place(slot=int(self._slots.busy.argmin()), reused=0)

    def reserve(self, slot: int, end: int) -> None:
        """See `Passes`."""
        self._reserved[slot] = end

    def next_pieces(self, slots: Ints) -> tuple[Ints, Ints]:
        """See `Passes`. A prompt is one piece: recurrent layers read it at once."""
        count = self._slots.known[slots] - self._slots.read[slots]
        work = count if self._model.caches else self._slots.known[slots]
        many = np.where(work > 1, work, 0)
        fits = (np.cumsum(many) <= self._config.prefill_tokens) | (work == 1)
        # The first prompt always runs.
        fits |= (work > 1) & (np.cumsum(work > 1) == 1)
        return slots[fits], count[fits]

    def hidden(self, slots: Ints, count: Ints, last: NDArray[np.bool_] | None) -> Float[Tensor, "_ W"]:
        """See `Passes`."""
        found: dict[int, Tensor] = dict(self._run(slots))
        states = [found[slot][-width:] for slot, width in zip(slots.tolist(), count.tolist(), strict=True)]
        if last is not None:
            states = [each[-1:] for each, wanted in zip(states, last.tolist(), strict=True) if wanted]
        return torch.cat(states) if states else next(iter(found.values()))[:0]

    def _run(self, slots: Ints) -> Iterator[tuple[int, Tensor]]:
        """Yield the slots, each with the states [n, W] of its next tokens, or of more."""
        begins = (self._slots.read[slots] == 0) | (not self._model.caches)
        for sequences in [*self._sequences]:
            here = np.isin(sequences.slots, slots[~begins])
            if here.any():
                yield from self._advance(sequences, np.flatnonzero(here))
            else:
                self._sequences.remove(sequences)
        length = self._slots.known[slots]
        for size in np.unique(length[begins]).tolist():
            yield from self._begin(slots[begins & (length == size)], size)

    def _advance(self, sequences: Sequences, rows: Ints) -> Iterator[tuple[int, Tensor]]:
        """Compute the next token of each text of `rows`; the other texts have left."""
        if len(rows) < len(sequences.slots):
            self._model.select_texts(sequences.cache, self._put(rows))
            sequences.slots = sequences.slots[rows]
        tokens = self._slots.token[sequences.slots, sequences.tokens]
        states, sequences.cache = self._model.decode(self._put(tokens[:, None]), sequences.cache)
        sequences.tokens += 1
        yield from zip(sequences.slots.tolist(), states, strict=True)

    def _begin(self, slots: Ints, size: int) -> Iterator[tuple[int, Tensor]]:
        """Compute whole texts of `size` tokens."""
        tokens = self._put(self._slots.token[slots, :size])
        # A text that is only scored needs no cache.
        generates = self._slots.limit[slots] > self._slots.start[slots]
        if self._model.caches and generates.any():
            states, cache = self._model.decode(tokens, None)
            self._sequences.append(Sequences(slots=slots.copy(), cache=cache, tokens=size))
        else:
            states = self._model.states(tokens)
        yield from zip(slots.tolist(), states, strict=True)

    def leave(self, slot: int) -> None:
        """See `Passes`."""
        del self._reserved[slot]
        for sequences in self._sequences:
            sequences.slots[sequences.slots == slot] = -1
        self._sequences = [each for each in self._sequences if (each.slots >= 0).any()]
        self._slots.clear(slot)
        self.full = False

    def scrub(self, slot: int) -> None:
        """See `Passes`. No text reads another's cache."""

    def discard(self, slot: int) -> None:
        """See `Passes`. `leave` has done it."""

    def _put(self, array: Ints) -> Tensor:
        return torch.as_tensor(array, device=self._model.device)
