"""Calls of a learner that all ranks make together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from bough.learner.process_group import RankFault
from bough.learner.ranks import Ranks

Result = TypeVar("Result")

RESTARTS = 3
"""Most times that the ranks start again in one call."""

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnerSnapshot:
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
class ReplicatedState(Protocol):
    """A learner, as far as ranks agree on it."""

    def snapshot(self) -> LearnerSnapshot:
        """A copy of all that an update changes."""
        ...

    def restore(self, snapshot: LearnerSnapshot) -> None:
        """Take over a `snapshot`."""
        ...

    def restore_on_all_ranks(self, snapshot: LearnerSnapshot) -> None:
        """Take over the `snapshot` of rank 0, as all ranks do."""
        ...

    def renew(self) -> None:
        """Take over the ranks' new shards of the weights, if they have started again."""
        ...

    def fingerprint(self) -> list[int]:
        """Numbers that differ from those of a learner with other values."""
        ...


class RankCalls:
    """Has all ranks call a method together, each on its own learner with the values of rank 0."""

    def __init__(self, ranks: Ranks, index: int, learner: ReplicatedState) -> None:
        """For the learner that has an index on all ranks."""
        self._ranks, self._index, self._learner = ranks, index, learner
        self._together = False

    def together(self, method: str, work: Callable[[], Result], *arguments: object, **named: object) -> Result:
        """This rank's work of a method, while the other ranks do theirs. A call within a call is part of it.

        When a rank dies or hangs, all others start again, and the work begins again with the values before it. Lost
        ranks that have come back take part from the next call on.

        Args:
            method: The method's name, for the other ranks.
            work: Does the work.
            arguments: The method's positional arguments.
            named: Its named arguments.

        Raises:
            RankFault: when ranks die again and again.
        """
        if self._together or self._ranks.alone:
            return work()
        self._ranks.admit()
        leads, restarts = self._ranks.rank == 0, 0
        before = self._learner.snapshot() if leads else None
        while True:
            self._together = True
            try:
                self._learner.renew()
                self._ranks.call(self._index, method, arguments, named)
                with self._ranks.faults():
                    self._align()
                    return work()
            except RankFault as fault:
                if before is not None:
                    self._learner.restore(before)
                if restarts == RESTARTS:
                    raise
                restarts += 1
                self._ranks.restart(fault)
            finally:
                self._together = False

    def _align(self) -> None:
        """Take over rank 0's values where a rank has others, as after a resumption."""
        first, *others = self._ranks.all_gather([self._learner.fingerprint()], CPU)
        if all(other == first for other in others):
            return
        snapshot = self._ranks.all_gather([self._learner.snapshot() if self._ranks.rank == 0 else None], CPU)[0]
        if snapshot is not None:
            self._learner.restore_on_all_ranks(snapshot)
