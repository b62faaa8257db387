"""Credit: which token is to thank for a return, in pure numpy."""

from collections.abc import Sequence
from typing import Protocol

from bough.tree import Credited, Rewarded


class Credit(Protocol):
    """Turns rewards into one advantage per sampled token. Sees the whole batch; trees of one task form a group."""

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        ...
