"""Forward passes over the decoder's slots, and the memory of what they have computed."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from bough.engine.slots import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a job goes.

    Attributes:
        slot: An idle slot.
        reused: How many of the job's first tokens are computed already.
    """

    slot: int
    reused: int


@runtime_checkable
class Passes(Protocol):
    """The forward passes of a decoder. A slot is idle, or busy with the tokens of one job."""

    @property
    def full(self) -> bool:
        """Whether memory lacks for a further job until one leaves."""
        ...

    @property
    def cache_tokens(self) -> int:
        """Most tokens in the cache."""
        ...

    @property
    def cached_tokens(self) -> int:
        """The tokens for which memory is allocated."""
        ...

    def place(self, prompt: Ints, end: int, running: Collection[int]) -> Place | None:
        """Find a slot for a job of up to `end` tokens, of which `prompt` may be computed already.

        None when the job must wait: a running job is computing a prefix that it can share, or memory lacks (`full`).
        """
        ...

    def reserve(self, slot: int, end: int) -> None:
        """Reserve memory for all tokens of a job that has just taken its slot: it never waits for memory."""
        ...

    def next_pieces(self, slots: Ints) -> tuple[Ints, Ints]:
        """[B] of the busy `slots`, and [B] how many of its next tokens each computes in the next pass, > 0."""
        ...

    def hidden(self, slots: Ints, count: Ints, last: NDArray[np.bool_] | None) -> Float[Tensor, "_ W"]:
        """Run one pass: the final hidden states of the next tokens of `slots`, concatenated.

        Args:
            slots: [B].
            count: [B], the number of tokens of each.
            last: [B], the slots of whose tokens the last one's state is returned, and no other's; None for the states
                of all tokens of all slots.
        """
        ...

    def leave(self, slot: int) -> None:
        """A job has left its slot."""
        ...

    def scrub(self, slot: int) -> None:
        """Overwrite what no other slot shares with a busy slot: its logits are not finite."""
        ...

    def discard(self, slot: int) -> None:
        """Forget the tokens of an idle slot."""
        ...
