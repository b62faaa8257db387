"""A penalty for completions without a parsable action."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import AtLeast, piece
from bough.tree import Floats, Kind, RewardRange, Ternary, Tree


@piece
class Format:
    """Channel "format": subtracted at each action that is not well formed (`Tree.well_formed`).

    Attributes:
        penalty: Cost of one such action, >= 0.
    """

    penalty: Annotated[float, AtLeast(0, "0 or more, it is subtracted")] = 0.1

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Minus the penalty, or nothing."""
        return {"format": RewardRange(low=-self.penalty, high=0)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `ACTION` nodes."""
        return [{"format": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        malformed = tree.well_formed == Ternary.NO
        return np.where((tree.kind == Kind.ACTION) & malformed, -self.penalty, 0.0)
