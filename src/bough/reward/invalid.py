"""A penalty for actions that the environment does not recognise."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import AtLeast, piece
from bough.tree import Floats, Kind, RewardRange, Ternary, Tree


@piece
class InvalidAction:
    """Channel "invalid_action": subtracted at each action that the environment does not recognise (`Tree.valid`).

    Attributes:
        penalty: Cost of one such action, >= 0.
    """

    penalty: Annotated[float, AtLeast(0, "0 or more, it is subtracted")] = 0.1

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Minus the penalty, or nothing."""
        return {"invalid_action": RewardRange(low=-self.penalty, high=0)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `ACTION` nodes."""
        return [{"invalid_action": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        invalid = tree.valid == Ternary.NO
        return np.where((tree.kind == Kind.ACTION) & invalid, -self.penalty, 0.0)
