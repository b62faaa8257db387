"""A reward for boxes that overlap the target element."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import AtLeast, piece
from bough.reward.pointing_rewards import pointing_rewards
from bough.screen.pointings import Pointings
from bough.tree import Floats, RewardRange, Tree


@piece
class BoxScore:
    """Channel "box": hit, overlap and size of the box that an action writes, as in GUI-G1 (arXiv 2505.15810).

    R = [centre in target] + `overlap` IoU + `size` H. H is the harmonic mean over the four borders of 1 -
    |difference| / side of the screen. Pays at each action whose correct action is a
    click; a point is a box without extent.

    A reward for hits alone makes boxes shrink, one for overlap alone makes them grow. The sum has its maximum at the
    target. In the paper's form a miss still earns `overlap` IoU + `size` H. The default pays both on a hit only.

    Examples:
        >>> exact = Pointing(kind="click", points=((150, 150),), box=(100, 100, 200, 200), target_kind="click",
        ...     target_box=(100, 100, 200, 200), screen=(1000, 1000))
        >>> BoxScore().score(Pointings.of(exact)).tolist()
        [1.375]

    Attributes:
        weight: Factor on the reward.
        overlap: Factor on the intersection over union, >= 0.
        size: Factor on the size term, >= 0.
        as_released: Whether a miss earns the size term.
    """

    weight: float = 0.1
    overlap: Annotated[float, AtLeast(0)] = 0.25
    size: Annotated[float, AtLeast(0)] = 0.125
    as_released: bool = False

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """A hit pays up to 1 and both terms; a miss nothing, as released the terms."""
        return {"box": RewardRange.of(0, 1 + self.overlap + self.size, weight=self.weight)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `ACTION` nodes."""
        return [{"box": self.weight * pointing_rewards(tree, self.score)} for tree in group]

    def score(self, pointings: Pointings) -> Floats:
        """[M]: the rewards of actions before the weight; 0 for an action that points at nothing."""
        point = np.tile(pointings.points[:, 0], 2)
        box = np.where(np.isnan(pointings.box), point, pointings.box)
        fit = self.overlap * iou(box, pointings.target_box) + self.size * closeness(
            box, pointings.target_box, pointings.screen
        )
        hit, points_at = pointings.hit, pointings.has_target & (pointings.count > 0)
        return np.where(points_at & (hit | self.as_released), hit + fit, 0.0)


def iou(box: Floats, other: Floats) -> Floats:
    """[M]: intersection over union of the areas of boxes [M, 4], in [0, 1]; 0 for a box without extent."""
    sides = np.minimum(box[:, 2:], other[:, 2:]) - np.maximum(box[:, :2], other[:, :2])
    meet = (sides > 0).all(axis=1)
    shared = np.where(meet, sides.prod(axis=1), 0.0)
    areas = (box[:, 2:] - box[:, :2]).prod(axis=1) + (other[:, 2:] - other[:, :2]).prod(axis=1)
    return shared / np.where(meet, areas - shared, 1.0)


def closeness(box: Floats, other: Floats, screen: Floats) -> Floats:
    """[M]: harmonic mean of 1 - |difference| / side of the screen [M, 2] over the four borders of boxes [M, 4].

    It is in [0, 1]; 0 where a border is a side away.
    """
    shares = 1 - np.abs(box - other) / np.tile(screen, 2)
    near = (shares > 0).all(axis=1)
    left, top, right, bottom = 1 / np.where(near, shares.T, 1.0)
    return np.where(near, 4 / (left + top + right + bottom), 0.0)
