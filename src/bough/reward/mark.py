"""A reward for a number that the parser finds in a turn."""

from collections.abc import Mapping, Sequence

import numpy as np

from bough.needs import Need, annotation
from bough.piece import piece
from bough.tree import Floats, Kind, RewardRange, Tree, marks_at


@piece
class MarkReward:
    """Channel `mark`: `weight` times the parser's annotation of this name, at each action that has it as a number.

    SSRL's reward (arXiv 2508.10874) is `EnvReward(weight=0.9)` and `MarkReward(mark="format", weight=0.1)`.

    Attributes:
        mark: The annotation.
        weight: Factor.
    """

    mark: str = "format"
    weight: float = 0.1

    @property
    def needs(self) -> frozenset[Need]:
        """The annotation."""
        return frozenset({annotation(self.mark)})

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Any number: the parser decides."""
        return {self.mark: RewardRange()}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `ACTION` nodes."""
        return [{self.mark: self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        paid, node = np.zeros(tree.nodes), np.flatnonzero(tree.kind == Kind.ACTION)
        marks = marks_at(tree, node, self.mark)
        paid[node] = [self.weight * found if isinstance(found, int | float) else 0.0 for found in marks]
        return paid
