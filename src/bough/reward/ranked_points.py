"""A reward for several points in one answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt

from bough.checks import check_finite
from bough.reward.pointing_rewards import pointing_rewards
from bough.tree import Floats, PayRange, Tree
from bough.tree.pointing import Point, Pointing


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPoints:
    """Channel "points": the adaptive exploration reward of InfiGUI-G1 (arXiv 2508.05731).

    With N points of which the first hit has rank k: 1 / sqrt(N k). Without a hit: -1 / N. An answer without a point,
    or with three points or more on one line, gets -1. Pays at each action whose correct action is a click.

    `format_point=True` adds the paper's format point, 1 for each well-formed answer. The sum is then 3/4 for a miss
    with four points and 0 for a miss with one.

    Example:
        >>> two = Pointing(kind="click", points=((50, 50), (5, 5)), target_kind="click", target_box=(0, 0, 9, 9))
        >>> RankedPoints().score(two)
        0.5

    Attributes:
        weight: Factor on the reward.
        format_point: Whether a well-formed answer earns 1 more.
        near_px: Points on a line are points at most this far from one, in pixels. 0 is the paper's exact test, which a
            point that is moved by one pixel passes.
    """

    weight: float = 0.1
    format_point: bool = False
    near_px: float = 0.0

    def __post_init__(self) -> None:
        if not self.near_px >= 0:
            raise ValueError(f"RankedPoints.near_px: got {self.near_px}; need 0 or more pixels")
        check_finite(self)

    @property
    def pays(self) -> Mapping[str, PayRange]:
        """From -1, for no point, to 1 for one point on the target, and the format point; times `weight`."""
        return {"points": PayRange.of(-1, 1 + self.format_point, weight=self.weight)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `ACTION` nodes."""
        return [{"points": self.weight * pointing_rewards(tree, self.score)} for tree in group]

    def score(self, pointing: Pointing) -> float:
        """The reward of one action before the weight."""
        if pointing.target_box is None:
            return 0.0
        points = pointing.points
        if not points or (len(points) > 2 and on_a_line(points, self.near_px)):
            return -1.0
        first = pointing.first_hit
        return self.format_point + (1 / sqrt(len(points) * first) if first else -1 / len(points))


def on_a_line(points: Sequence[Point], near: float = 0.0) -> bool:
    """Whether all points are at most `near` away from the line through the first point and the one farthest from it."""
    left, top = points[0]
    ways = [(x - left, y - top) for x, y in points]
    right, down = max(ways, key=lambda way: way[0] ** 2 + way[1] ** 2)
    return all(abs(x * down - y * right) <= near * hypot(right, down) for x, y in ways)
