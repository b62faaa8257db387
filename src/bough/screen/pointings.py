"""The boxes and points of all nodes of a tree, as columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bough.screen.pointing import Pointing, record_in
from bough.tree import Info, InfoColumn

NO_BOX = (np.nan,) * 4
LARGEST_PX = 1e9
"""Coordinates are kept within this distance from 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pointings:
    """M values of `Pointing` as columns, in the order of their nodes.

    A comparison with a missing box or point is False, because their coordinates are nan.

    Examples:
        >>> seen = Pointings.of(Pointing(kind="click", points=((5, 5),), target_kind="click", target_box=(0, 0, 9, 9)))
        >>> seen.hit.tolist(), (seen.kind == seen.target_kind).tolist()
        ([True], [True])

    Attributes:
        node: [M] int64, the node after the action.
        kind: [M] str, kind of the action.
        target_kind: [M] str, kind of the correct action.
        target: [M] int64, equal where the kind, element and box of the correct action are equal.
        box: [M, 4] float64, the box that the action wrote; nan for none.
        target_box: [M, 4] float64, the box of the correct action's element; nan for none.
        screen: [M, 2] float64, width and height.
        count: [M] int64, number of points of the action.
        point: [P, 2] float64, the points of all actions, one action after the other, best first.
    """

    node: NDArray[np.int64]
    kind: NDArray[np.str_]
    target_kind: NDArray[np.str_]
    target: NDArray[np.int64]
    box: NDArray[np.float64]
    target_box: NDArray[np.float64]
    screen: NDArray[np.float64]
    count: NDArray[np.int64]
    point: NDArray[np.float64]

    @staticmethod
    def of(*pointings: Pointing) -> "Pointings":
        """The columns of some pointings, at nodes 0, 1, 2, ..."""
        return _columns({node: each.record() for node, each in enumerate(pointings)})

    @property
    def points(self) -> NDArray[np.float64]:
        """[M, K, 2], K the largest `count`: the points of each action, best first, then its first again; else nan."""
        first = np.cumsum(self.count) - self.count
        rank = np.arange(max(1, self.count.max(initial=0)))
        place = np.where(rank < self.count[:, None], first[:, None] + rank, first[:, None])
        place[self.count == 0] = len(self.point)
        return np.concatenate([self.point, [(np.nan, np.nan)]])[place]

    @property
    def has_target(self) -> NDArray[np.bool_]:
        """[M]: whether the correct action has an element."""
        return ~np.isnan(self.target_box[:, 0])

    @property
    def hit(self) -> NDArray[np.bool_]:
        """[M]: whether the first point is in the target's box, borders included."""
        return _inside(self.points[:, 0], self.target_box)

    @property
    def first_hit(self) -> NDArray[np.int64]:
        """[M]: the rank of the first point in the target's box, from 1; 0 for none."""
        inside = _inside(self.points, self.target_box[:, None])
        return np.where(inside.any(axis=1), inside.argmax(axis=1) + 1, 0)


def read_pointings(info: Sequence[Info]) -> Pointings:
    """The columns of the records `info[node]["env"]["pointing"]` of a tree; see `Pointing.record`.

    Raises:
        KeyError, TypeError, ValueError: when a record has another form.
    """
    records = (record_in(each) for each in info)
    return _columns({node: record for node, record in enumerate(records) if record is not None})


def _columns(found: Mapping[int, Mapping[str, Any]]) -> Pointings:
    """The columns of records, by node."""
    records = found.values()
    points = [each["points"] for each in records]
    kind = np.asarray([each["kind"] for each in records], dtype=np.str_)
    target_kind = np.asarray([each["target_kind"] for each in records], dtype=np.str_)
    numbers: dict[object, int] = {}
    targets = ((each["target_kind"], each["target"], *(each["target_box"] or ())) for each in records)
    target = [numbers.setdefault(each, len(numbers)) for each in targets]
    return Pointings(
        node=np.asarray([*found], dtype=np.int64),
        kind=kind,
        target_kind=target_kind,
        target=np.asarray(target, dtype=np.int64),
        box=_numbers([each["box"] or NO_BOX for each in records], 4),
        target_box=_numbers([each["target_box"] or NO_BOX for each in records], 4),
        screen=_numbers([each["screen"] for each in records], 2),
        count=np.asarray([*map(len, points)], dtype=np.int64),
        point=_numbers([*chain.from_iterable(points)], 2),
    )


def _numbers(rows: Sequence[Sequence[float]], width: int) -> NDArray[np.float64]:
    """[rows, width]: coordinates.

    Raises:
        ValueError: when a row has another number of them.
    """
    numbers = [*chain.from_iterable(rows)]
    try:
        found = np.asarray(numbers, dtype=np.float64)
    except OverflowError:
        found = np.asarray([min(max(each, -LARGEST_PX), LARGEST_PX) for each in numbers])
    return np.clip(found.reshape(len(rows), width), -LARGEST_PX, LARGEST_PX)


def _inside(point: NDArray[np.float64], box: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether points [..., 2] are in boxes [..., 4], borders included."""
    within = (box[..., :2] <= point) & (point <= box[..., 2:])
    return within[..., 0] & within[..., 1]


POINTINGS = InfoColumn(name="Step.info['pointing']", read=read_pointings, need="`Pointing.record()`")
"""The boxes and points of a tree."""
