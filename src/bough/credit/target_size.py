"""Larger advantages for turns whose target is small."""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, Literal

import numpy as np

from bough.credit.credit import Credit, compares_with
from bough.credit.grpo import Grpo
from bough.piece import AtLeast, Between, piece
from bough.screen import POINTINGS
from bough.screen.pointings import Pointings
from bough.tree import Credited, Floats, Rewarded, path_view


@piece
class TargetSize:
    """GUI-G1's difficulty (arXiv 2505.15810), experimental: advantages times a weight, larger for a small target.

    The target is the element that the correct action points at (`Pointing.target_box`). Its relative size s is the root
    of its share of the screen's area. The advantage of a turn, which `base` computes, is multiplied by

        side / s, in [1 / most, most]

    Elements of .04 and .01 of the screen, side .2: weights 1 and 2. A turn whose correct action has no element has the
    weight 1. The paper takes the relative size of the box for the difficulty of a task of one turn; its formula could
    not be checked, and its released data have no weights. `TaskWeight` reads weights from the tasks' data.

    Attributes:
        base: The rule for advantages.
        side: Relative size of a target with the weight 1, in (0, 1].
        most: Largest weight, >= 1.
    """

    base: Credit = field(default_factory=lambda: Grpo(std="none"))
    side: Annotated[float, Between(0, 1, "a number above 0, at most 1", above=True)] = 0.2
    most: Annotated[float, AtLeast(1, "1 or more")] = 4.0

    @property
    def compares(self) -> Literal["task", "batch", "nothing"]:
        """As the base."""
        return compares_with(self.base)

    def __call__(self, rewarded: Sequence[Rewarded]) -> list[Credited]:
        """Credits every tree, in order.

        Raises:
            StageError: when a record of a pointing cannot be read.
        """
        return [self._weighted(each) for each in self.base(rewarded)]

    def weights(self, pointings: Pointings) -> Floats:
        """[M]: the weights of actions by their targets."""
        sides = np.maximum(1.0, pointings.target_box[:, 2:] - pointings.target_box[:, :2])
        size = np.sqrt((sides / pointings.screen).prod(axis=1))
        return np.nan_to_num(np.clip(self.side / size, 1 / self.most, self.most), nan=1.0)

    def _weighted(self, credited: Credited) -> Credited:
        tree, view = credited.tree, path_view([credited.rewarded])
        pointings, weight = POINTINGS.of(tree), np.ones(tree.nodes)
        weight[tree.parent[pointings.node]] = self.weights(pointings)
        return replace(credited, path_advantage=credited.path_advantage * weight[view.node][view.path_tokens.step])
