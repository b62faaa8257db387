"""A reward of turns for the observations that they led to."""

from collections.abc import Mapping, Sequence

import numpy as np

from bough.needs import Need, appraised
from bough.piece import piece
from bough.reward.potential import state_potentials
from bough.tree import Floats, Kind, RewardRange, Tree


@piece
class ObservationValue:
    """Channel of an appraiser's column: a turn is paid the value of the observation that follows it.

    The appraiser values the observation before each action, at the action. Where several actions follow an observation,
    it is worth the mean of their values. The last turn of a path is paid nothing. InfoPO (arXiv 2603.00656) has the
    information in the observation, `ObservationProbe`: the credit is that of the action before it.

    Attributes:
        column: The column, and the name of the channel.
        weight: Factor on the value.
    """

    column: str = "information"
    weight: float = 1.0

    @property
    def needs(self) -> frozenset[Need]:
        """The column."""
        return frozenset({appraised(self.column)})

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Any number: the appraiser decides."""
        return {self.column: RewardRange()}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the observations after turns.

        Raises:
            StageError: when a tree lacks the column.
        """
        return [{self.column: self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        value, known = state_potentials(tree, self.column, "ObservationValue.column")
        return np.where(known & (tree.kind == Kind.OBSERVATION), self.weight * value, 0.0)
