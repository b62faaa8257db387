"""A reward for boxes that overlap the target element."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bough.checks import check_finite
from bough.reward.pointing_rewards import pointing_rewards
from bough.tree import Floats, PayRange, Tree
from bough.tree.pointing import Box, Pointing


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxScore:
    """Channel "box": hit, overlap and size of the box that an action writes, as in GUI-G1 (arXiv 2505.15810).

    R = [centre in target] + `overlap` IoU + `size` H. H is the harmonic mean over the four borders of 1 -
    |difference| / side of the screen. Pays at each action whose correct action is a
    click; a point is a box without extent.

    A reward for hits alone makes boxes shrink, one for overlap alone makes them grow. The sum has its maximum at the
    target. In the paper's form a miss still earns `overlap` IoU + `size` H. The default pays both on a hit only.

    Example:
        >>> BoxScore().score(Pointing(kind="click", points=((150, 150),), box=(100, 100, 200, 200),
        ...     target_kind="click", target_box=(100, 100, 200, 200), screen=(1000, 1000)))
        1.375

    Attributes:
        weight: Factor on the reward.
        overlap: Factor on the intersection over union.
        size: Factor on the size term.
        as_released: Whether a miss earns the size term.
    """

    weight: float = 0.1
    overlap: float = 0.25
    size: float = 0.125
    as_released: bool = False

    def __post_init__(self) -> None:
        check_finite(self)

    @property
    def pays(self) -> Mapping[str, PayRange]:
        """A hit pays up to 1 and both terms; a miss nothing, as released the terms."""
        return {"box": PayRange.of(0, 1 + self.overlap + self.size, weight=self.weight)}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at `ACTION` nodes."""
        return [{"box": self.weight * pointing_rewards(tree, self.score)} for tree in group]

    def score(self, pointing: Pointing) -> float:
        """The reward of one action before the weight; 0 for an action that points at nothing."""
        target = pointing.target_box
        if target is None or not pointing.points:
            return 0.0
        point = pointing.points[0]
        box = pointing.box or (*point, *point)
        fit = self.overlap * iou(box, target) + self.size * closeness(box, target, pointing.screen)
        if pointing.hit:
            return 1 + fit
        return fit if self.as_released else 0.0


def iou(box: Box, other: Box) -> float:
    """Intersection over union of the areas of two boxes, in [0, 1]; 0 for a box without extent."""
    across = min(box[2], other[2]) - max(box[0], other[0])
    down = min(box[3], other[3]) - max(box[1], other[1])
    if across <= 0 or down <= 0:
        return 0.0
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (box, other)]
    return across * down / (sum(areas) - across * down)


def closeness(box: Box, other: Box, screen: tuple[int, int]) -> float:
    """Harmonic mean of 1 - |difference| / side over the four borders, in [0, 1]; 0 where a border is a side away."""
    shares = [1 - abs(box[side] - other[side]) / screen[side % 2] for side in range(4)]
    return 4 / sum(1 / share for share in shares) if min(shares) > 0 else 0.0
