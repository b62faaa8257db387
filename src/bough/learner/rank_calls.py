"""Calls of a learner that all ranks make together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from bough.learner.ranks import RankFault, Ranks

Result = TypeVar("Result")

RESTARTS = 3
"""Most times that the ranks start again in one call."""

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values:
    """All that an update changes, on the CPU.

    Attributes:
        policy: The trained weights.
        critic: The critic's weights; empty without one.
        moments: The optimizer's moments.
        updates: Number of optimizer steps.
    """

    policy: dict[str, Tensor]
    critic: dict[str, Tensor]
    moments: dict[str, Tensor]
    updates: int


@runtime_checkable
class Changing(Protocol):
    """A learner, as far as ranks agree on it."""

    def values(self) -> Values:
        """A copy of all that an update changes."""
        ...

    def take(self, values: Values) -> None:
        """Take over the result of `values`."""
        ...

    def take_together(self, values: Values) -> None:
        """Take over the result of `values` of rank 0, as all ranks do."""
        ...

    def renew(self) -> None:
        """Take over the ranks' new shards of the weights, if they have started again."""
        ...

    def fingerprint(self) -> list[int]:
        """Numbers that differ from those of a learner with other values."""
        ...


class RankCalls:
    """Has all ranks call a method together, each on its own learner with the values of rank 0."""

    def __init__(self, ranks: Ranks, number: int, learner: Changing) -> None:
        """For the learner that has a number on all ranks."""
        self._ranks, self._number, self._learner = ranks, number, learner
        self._together = False

    def together(self, method: str, work: Callable[[], Result], *arguments: object, **named: object) -> Result:
        """This rank's work of a method, while the other ranks do theirs. A call within a call is part of it.

        When a rank dies or hangs, all others start again, and the work begins again with the values before it.

        Args:
            method: The method's name, for the other ranks.
            work: Does the work.
            arguments: The method's positional arguments.
            named: Its named arguments.

        Raises:
            RankFault: when ranks die again and again.
        """
        if self._together or self._ranks.count == 1:
            return work()
        leads, restarts = self._ranks.rank == 0, 0
        before = self._learner.values() if leads else None
        while True:
            self._together = True
            try:
                self._learner.renew()
                self._ranks.call(self._number, method, arguments, named)
                with self._ranks.faults():
                    self._align()
                    return work()
            except RankFault as fault:
                if before is not None:
                    self._learner.take(before)
                if restarts == RESTARTS:
                    raise
                restarts += 1
                self._ranks.restart(fault)
            finally:
                self._together = False

    def _align(self) -> None:
        """Take over rank 0's values where a rank has others, as after a resumption."""
        first, *others = self._ranks.gather([self._learner.fingerprint()], CPU)
        if all(other == first for other in others):
            return
        values = self._ranks.gather([self._learner.values() if self._ranks.rank == 0 else None], CPU)[0]
        if values is not None:
            self._learner.take_together(values)
