"""Boxes and points on a screen, in the `info` of a node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from bough.tree import Info, step_info_in

Box: TypeAlias = tuple[int, int, int, int]
"""(left, top, right, bottom) in pixels, borders included."""

Point: TypeAlias = tuple[int, int]
"""(x, y) in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointing:
    """The points of an action, and the target of a correct one. An environment with a screen has it in `Step.info`.

    Examples:
        >>> Pointing(kind="click", points=((5, 5),), target_kind="click", target="3", target_box=(0, 0, 9, 9)).hit
        True

    Attributes:
        kind: Kind of the action, such as "click" or "type"; "" for an action that was not recognised.
        points: The points of the action, best first; a click on an element is its centre.
        box: The box that the action wrote; None for none.
        target_kind: Kind of the correct action; "" where none is known.
        target: Id of the element that the correct action clicks; "" for an action without an element.
        target_box: Its box; None for an action without an element.
        screen: Width and height of the screen, in pixels.
    """

    kind: str
    points: tuple[Point, ...] = ()
    box: Box | None = None
    target_kind: str = ""
    target: str = ""
    target_box: Box | None = None
    screen: Point = (1, 1)

    @property
    def hit(self) -> bool:
        """Whether the first point is in the target's box."""
        return bool(self.points) and self.target_box is not None and inside(self.points[0], self.target_box)

    @property
    def first_hit(self) -> int:
        """The rank of the first point in the target's box, from 1; 0 for none."""
        box = self.target_box
        ranks = (rank for rank, point in enumerate(self.points, 1) if box is not None and inside(point, box))
        return next(ranks, 0)

    def record(self) -> dict[str, object]:
        """Returns it as JSON data."""
        return {
            "kind": self.kind,
            "points": [list(point) for point in self.points],
            "box": None if self.box is None else list(self.box),
            "target_kind": self.target_kind,
            "target": self.target,
            "target_box": None if self.target_box is None else list(self.target_box),
            "screen": list(self.screen),
        }


def inside(point: Point, box: Box) -> bool:
    """Whether a point is in a box, borders included."""
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def centre(box: Box) -> Point:
    """The centre of a box, rounded down."""
    return (box[0] + box[2]) // 2, (box[1] + box[3]) // 2


def record_in(info: Info) -> Mapping[str, Any] | None:
    """The record of the action before a node, from its `info`; None where the environment has none."""
    found = step_info_in(info).get("pointing")
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None


def pointing_in(info: Info) -> Pointing | None:
    """The `Pointing` of the action before a node, from its `info`; None where the environment has none."""
    row = record_in(info)
    if row is None:
        return None
    return Pointing(
        kind=row["kind"],
        points=tuple((point[0], point[1]) for point in row["points"]),
        box=_box(row["box"]),
        target_kind=row["target_kind"],
        target=row["target"],
        target_box=_box(row["target_box"]),
        screen=(row["screen"][0], row["screen"][1]),
    )


def _box(numbers: list[int] | None) -> Box | None:
    return None if numbers is None else (numbers[0], numbers[1], numbers[2], numbers[3])
