"""Advantages times a weight that each task has in its data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bough.credit.credit import Credit, compares_with
from bough.credit.grpo import Grpo
from bough.tree import Credited, Rewarded, StageError


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWeight:
    """GUI-G1's difficulty weight (arXiv 2505.15810): the advantages of `base`, times a number in the task's data.

    A task without the field has the weight 1. The weight does not change the sign of an advantage. The
    targets of value heads stay. GUI-G1 gives small elements more weight; no world of this library writes the field, and
    `TargetSize` reads the elements themselves.

    Attributes:
        base: The rule for advantages.
        field: The field of `Task.data` with the weight, a number above 0.
    """

    base: Credit = Grpo(std="none")
    field: str = "difficulty"

    @property
    def data_field(self) -> str:
        """See `ReadsData`."""
        return self.field

    @property
    def compares(self) -> Literal["task", "batch", "nothing"]:
        """As the base."""
        return compares_with(self.base)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a task has another value under `field`.
        """
        return [self._weighted(each) for each in self.base(rewarded)]

    def _weighted(self, credited: Credited) -> Credited:
        task = credited.tree.task
        weight = task.data.get(self.field, 1.0)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise StageError(
                f"TaskWeight.field: got {self.field!r} with {weight!r} in the data of task {task.id}; need a "
                "finite number above 0"
            )
        return replace(credited, path_advantage=credited.path_advantage * weight)
