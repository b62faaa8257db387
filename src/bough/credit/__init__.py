"""Credit: which token is to thank for a return, in pure numpy."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from bough.credit.grpo import Grpo, dr_grpo, rloo
from bough.tree import Credited, Rewarded

__all__ = ["Credit", "Grpo", "dr_grpo", "rloo"]


@runtime_checkable
class Credit(Protocol):
    """Turns rewards into one advantage per sampled token. Sees the whole batch; trees of one task form a group."""

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credit every tree, in order."""
        ...
