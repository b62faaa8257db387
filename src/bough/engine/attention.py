"""Attention of one pass: tokens of many slots laid end to end, each reading what its slot holds so far."""

from abc import ABC, abstractmethod

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bough.engine.cache import Cache
from bough.engine.model import Attend
from bough.engine.pages import Pages
from bough.engine.slots import Ints
from bough.engine.stretches import stretches


class Attention(ABC):
    """An `Attend` (see `model`) for one forward pass over a ragged batch."""

    def __init__(self, cache: Cache, pages: Pages, slots: Ints, first: Ints, count: Ints) -> None:
        """Say what is read.

        Args:
            cache: Keys and values, large enough.
            pages: Where they lie, with room for what is read.
            slots: [B], in the order in which their tokens lie end to end.
            first: [B], the position of each slot's first new token.
            count: [B], how many new tokens each slot reads, > 0.
        """
        self._cache, self._pages = cache, pages
        self._found = stretches(pages, slots, first, count)
        self._decodes = bool((count == 1).all())
        # How often it can still go on; not known before that is asked.
        self._passes: int | None = None

    def advance(self) -> bool:
        """Go on to a pass in which each slot, having read one token, reads one more.

        Nobody may have got or lost pages since. False when it must be planned anew: then this is of no use any more.
        """
        if not self._decodes:
            return False
        if self._passes is None:
            self._passes = self._room()
        if not self._passes:
            return False
        self._passes -= 1
        self._go_on()
        return True

    def __call__(
        self,
        layer: int,
        query: Float[Tensor, "H U D"],
        key: Float[Tensor, "K U D"],
        value: Float[Tensor, "K U D"],
        scale: float,
        *,
        window: int | None = None,
    ) -> Float[Tensor, "H U D"]:
        """Write the new keys and values, then attend; with a window, to the last `window` positions alone."""
        self._write(layer, key, value)
        return self._look(layer, query, scale, window)

    def last(self, slots: Ints, position: Ints, rows: Ints) -> "tuple[Attention, Attend]":
        """Attention for the tokens alone that slots read last: of what it is told, those at `rows` [m].

        Returns:
            Attention of these, which can go on to the next token, and what attends in this pass in its stead.
        """
        few = self._of(slots, position, np.ones_like(position))
        at: Int[Tensor, " m"] = torch.as_tensor(rows, device=self._cache.keys[0].device)

        def attend(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            self._write(layer, key, value)
            return few._look(layer, query.index_select(1, at), scale, window)

        return few, attend

    @abstractmethod
    def _of(self, slots: Ints, first: Ints, count: Ints) -> "Attention":
        """The same kind for another pass over the same pages."""

    @abstractmethod
    def _write(self, layer: int, key: Float[Tensor, "K U D"], value: Float[Tensor, "K U D"]) -> None:
        """Put new keys and values where they belong."""

    @abstractmethod
    def _look(self, layer: int, query: Float[Tensor, "H U D"], scale: float, window: int | None) -> Tensor:
        """What the queries find, [H, U, D]."""

    def _room(self) -> int:
        """How often it can go on."""
        return self._found.room

    @abstractmethod
    def _go_on(self) -> None:
        """Take over what was planned for a pass whose tokens stand one further."""
