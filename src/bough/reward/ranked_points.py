"""A reward for several points in one answer."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import AtLeast, piece
from bough.reward.pointing_rewards import pointing_rewards
from bough.screen.pointings import Pointings
from bough.tree import Bools, Floats, RewardRange, Tree


@piece
class RankedPoints:
    """Channel "points": the adaptive exploration reward of InfiGUI-G1 (arXiv 2508.05731).

    With N points of which the first hit has rank k: 1 / sqrt(N k). Without a hit: -1 / N. An answer without a point,
    or with three points or more on one line, gets -1. Pays at each action whose correct action is a click.

    `format_point=True` adds the paper's format point, 1 for each well-formed answer. The sum is then 3/4 for a miss
    with four points and 0 for a miss with one.

    Examples:
        >>> two = Pointing(kind="click", points=((50, 50), (5, 5)), target_kind="click", target_box=(0, 0, 9, 9))
        >>> RankedPoints().score(Pointings.of(two)).tolist()
        [0.5]

    Attributes:
        weight: Factor on the reward.
        format_point: Whether a well-formed answer earns 1 more.
        near_px: Points on a line are points at most this far from one, in pixels. 0 is the paper's exact test, which a
            point that is moved by one pixel passes.
    """

    weight: float = 0.1
    format_point: bool = False
    near_px: Annotated[float, AtLeast(0, "0 or more pixels")] = 0.0

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """From -1, for no point, to 1 for one point on the target, and the format point; times `weight`."""
        return {"points": RewardRange.of(-1, 1 + self.format_point, weight=self.weight)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `ACTION` nodes."""
        return [{"points": self.weight * pointing_rewards(tree, self.score)} for tree in group]

    def score(self, pointings: Pointings) -> Floats:
        """[M]: the rewards of actions before the weight."""
        count, first_hit = np.maximum(pointings.count, 1), pointings.first_hit
        ranked = np.where(first_hit > 0, 1 / np.sqrt(count * np.maximum(first_hit, 1)), -1 / count)
        refused = (pointings.count == 0) | ((pointings.count > 2) & on_a_line(pointings.points, self.near_px))
        return np.where(pointings.has_target, np.where(refused, -1.0, self.format_point + ranked), 0.0)


def on_a_line(points: Floats, near: float = 0.0) -> Bools:
    """[M]: whether all `points` [M, K, 2] are at most `near` from a line.

    The line is through an action's first point and the one farthest from it.
    """
    x, y = np.moveaxis(points - points[:, :1], -1, 0)
    farthest = np.argmax(x**2 + y**2, axis=1)[:, None]
    right, down = np.take_along_axis(x, farthest, axis=1), np.take_along_axis(y, farthest, axis=1)
    return (np.abs(x * down - y * right) <= near * np.hypot(right, down)).all(axis=1)
