"""Rewards from the columns of appraisers."""

from collections.abc import Mapping, Sequence

import numpy as np

from bough.needs import Need, appraised
from bough.piece import piece
from bough.tree import Floats, RewardRange, Tree, Verdict, appraisal_of


@piece
class Judged:
    """Channel of an appraiser's column: its value at each node that has one.

    A path without a value is `FAILED` before rewards are computed: it enters no group, no baseline and no loss.

    Attributes:
        column: The column, and the name of the channel.
        weight: Factor on the value.
    """

    column: str = "judge"
    weight: float = 1.0

    @property
    def needs(self) -> frozenset[Need]:
        """The column."""
        return frozenset({appraised(self.column)})

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Any number: the appraiser's parser decides."""
        return {self.column: RewardRange()}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the nodes with a value.

        Raises:
            StageError: when a tree lacks the column.
        """
        return [{self.column: self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        appraisal = appraisal_of(tree, self.column, "Judged.column")
        return self.weight * np.where(appraisal.verdict == Verdict.OK, appraisal.value, 0.0)
