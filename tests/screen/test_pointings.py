"""The columns of pointings: as the values they are read from, and read with every new `info`."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.reward import PointInBox
from bough.screen import POINTINGS, Pointing, Pointings, pointing_in
from bough.tree import Outcome, StageError, Tree

CLICK = Pointing(kind="click", points=((5, 5),), target_kind="click", target_box=(0, 0, 9, 9))

coordinate = st.integers(-2, 12)
box = st.tuples(coordinate, coordinate, coordinate, coordinate)
pointings = st.builds(
    Pointing,
    kind=st.sampled_from(["click", "type", ""]),
    points=st.lists(st.tuples(coordinate, coordinate), max_size=4).map(tuple),
    box=st.none() | box,
    target_kind=st.sampled_from(["click", "type", ""]),
    target=st.sampled_from(["a", "b", ""]),
    target_box=st.none() | box,
    screen=st.just((12, 12)),
)


def shown(*seen: object) -> Tree:
    """A path with these records of pointings at its observations."""
    nodes = [N(parent=-1, kind=PROMPT)]
    for each in seen:
        nodes.append(N(parent=len(nodes) - 1, kind=ACTION))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, info={"env": {"pointing": each}}))
    nodes[-1] = replace(nodes[-1], outcome=Outcome.TERMINATED)
    return build(*nodes)


@given(st.lists(pointings, min_size=1, max_size=6))
def test_the_columns_are_those_of_the_values(seen: list[Pointing]) -> None:
    tree = shown(*(each.record() for each in seen))
    columns = POINTINGS.of(tree)
    assert columns.node.tolist() == [2 * number + 2 for number in range(len(seen))]
    assert [pointing_in(tree.info[node]) for node in columns.node.tolist()] == seen
    assert columns.kind.tolist() == [each.kind for each in seen]
    assert columns.target_kind.tolist() == [each.target_kind for each in seen]
    assert columns.hit.tolist() == [each.hit for each in seen]
    assert columns.first_hit.tolist() == [each.first_hit for each in seen]
    assert columns.has_target.tolist() == [each.target_box is not None for each in seen]
    assert columns.count.tolist() == [len(each.points) for each in seen]
    for row, each in zip(columns.points.tolist(), seen, strict=True):
        assert row[: len(each.points)] == [list(point) for point in each.points]
    for row, each in zip(columns.box, seen, strict=True):
        assert np.isnan(row).all() if each.box is None else row.tolist() == list(each.box)
    targets = [(each.target_kind, each.target, each.target_box) for each in seen]
    same = [[one == other for other in targets] for one in targets]
    assert (columns.target[:, None] == columns.target).tolist() == same


def test_a_tree_with_another_info_has_other_columns() -> None:
    tree = shown(CLICK.record(), CLICK.record())
    assert POINTINGS.of(replace(tree, task=replace(tree.task, id="other"))) is POINTINGS.of(tree), "read once"
    bare = replace(tree, info=({},) * tree.nodes)
    assert len(POINTINGS.of(bare).node) == 0
    assert POINTINGS.of(replace(bare, info=tree.info)).hit.tolist() == [True, True]
    copied = pickle.loads(pickle.dumps(tree))
    assert POINTINGS.of(replace(copied, task=tree.task)) is POINTINGS.of(copied)


def test_a_record_of_another_form_is_no_error_before_a_reward_reads_it() -> None:
    tree = shown(CLICK.record(), {"kind": "click"})
    with pytest.raises(StageError, match=r"Step.info\['pointing'\] of task task: got KeyError: 'points'; need"):
        PointInBox()([tree])
    with pytest.raises(StageError, match=r"got ValueError: .*; need `Pointing.record\(\)`"):
        PointInBox()([shown({**CLICK.record(), "box": [1, 2, 3]})])
    assert PointInBox()([shown("a text")])[0]["grounding"].tolist() == [0, 0, 0]


def test_coordinates_without_a_bound_are_clipped() -> None:
    far = Pointings.of(replace(CLICK, points=((10**400, 5), (-(10**400), 5))), CLICK)
    assert far.points[0].tolist() == [[1e9, 5], [-1e9, 5]]
    assert far.hit.tolist() == [False, True]
    assert np.isnan(far.box).all()
