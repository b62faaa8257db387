"""A reward for clicks on the right element."""

from collections.abc import Mapping, Sequence

import numpy as np

from bough.piece import piece
from bough.reward.pointing_rewards import pointing_rewards
from bough.screen.pointings import Pointings
from bough.tree import Floats, RewardRange, Tree


@piece
class PointInBox:
    """Channel "grounding": the rule of UI-R1 (arXiv 2503.21620), at each action with a known correct action.

    1/2 for the right kind of action, and 1/2 more where the point is in the target's box or the action has no target.
    The format reward of UI-R1 is `Format`. Needs an environment with a screen, such as `Screens`: an action without
    `Pointing` pays nothing. Assumes that the oracle's action is the only right one.

    UI-R1 has one action per task. Here a path pays for a target once (for an action without an element: for its kind
    once), so a policy gains nothing when it leaves a target and returns to it.

    As in the paper, an action of the right kind without a target pays in full. `clicks_only=True` pays only at actions
    whose correct action is a click, so a policy gets no reward for easy kinds such as "back".

    Examples:
        >>> on_target = Pointing(kind="click", points=((5, 5),), target_kind="click", target_box=(0, 0, 9, 9))
        >>> PointInBox().score(Pointings.of(on_target)).tolist()
        [1.0]

    Attributes:
        weight: Factor on the reward.
        clicks_only: Whether actions without a target box pay nothing.
    """

    weight: float = 0.1
    clicks_only: bool = False

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Up to `weight` for a target."""
        return {"grounding": RewardRange.of(0, 1, weight=self.weight)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `ACTION` nodes."""
        return [{"grounding": self.weight * pointing_rewards(tree, self.score)} for tree in group]

    def score(self, pointings: Pointings) -> Floats:
        """[M]: the rewards of actions before the weight, in [0, 1]."""
        right_kind = pointings.kind == pointings.target_kind
        right_place = right_kind & (pointings.hit | ~pointings.has_target)
        paid = (right_kind.astype(np.float64) + right_place) / 2
        return np.where(pointings.has_target, paid, 0.0) if self.clicks_only else paid
