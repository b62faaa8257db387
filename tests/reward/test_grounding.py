"""Rewards for where an action points."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.reward import BoxScore, PointInBox, RankedPoints, compute_rewards
from bough.screen import Box, Pointing, Pointings, pointing_in
from bough.tree import Outcome

TARGET: Box = (100, 100, 200, 200)
SCREEN = (1000, 1000)
coordinate = st.integers(0, 999)


def wrote(box: Box) -> Pointing:
    middle = ((box[0] + box[2]) // 2, (box[1] + box[3]) // 2)
    return Pointing(kind="click", points=(middle,), box=box, target_kind="click", target_box=TARGET, screen=SCREEN)


def click(*points: tuple[int, int], target_kind: str = "click") -> Pointing:
    return Pointing(
        kind="click",
        points=points,
        target_kind=target_kind,
        target_box=TARGET if target_kind == "click" else None,
        screen=SCREEN,
    )


def scored(reward: PointInBox | BoxScore | RankedPoints, pointing: Pointing) -> float:
    (score,) = reward.score(Pointings.of(pointing)).tolist()
    return score


def test_worked_example() -> None:
    """A click on the target, one beside it, text where text is right, a click where text is right, no known action."""
    typed = Pointing(kind="type", target_kind="type")
    beside = replace(click((99, 150)), target="other")
    seen = [click((150, 150)), beside, typed, click((150, 150), target_kind="type"), Pointing(kind="click")]
    nodes = [N(parent=-1, kind=PROMPT)]
    for pointing in seen:
        nodes.append(N(parent=len(nodes) - 1, kind=ACTION))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, info={"env": {"pointing": pointing.record()}}))
    nodes[-1] = replace(nodes[-1], outcome=Outcome.TERMINATED, success=True)
    tree = build(*nodes)
    assert [pointing_in(info) for info in tree.info[2::2]] == seen
    (paid,) = compute_rewards([tree], [PointInBox(weight=1.0), BoxScore(weight=1.0), RankedPoints(weight=1.0)])
    assert paid.channels["grounding"][1::2].tolist() == [1.0, 0.5, 1.0, 0.0, 0.0]
    assert paid.channels["points"][1::2].tolist() == [1.0, -1.0, 0.0, 0.0, 0.0]
    assert not paid.channels["grounding"][::2].any()
    (clicks,) = compute_rewards([tree], [PointInBox(weight=2.0, clicks_only=True)])
    assert clicks.channels["grounding"][1::2].tolist() == [2.0, 1.0, 0.0, 0.0, 0.0]


def test_a_click_where_another_kind_of_action_is_right_earns_nothing() -> None:
    assert scored(PointInBox(), click((150, 150), target_kind="type")) == 0
    assert scored(PointInBox(), Pointing(kind="type", target_kind="click", target_box=TARGET)) == 0


def test_a_path_pays_for_a_target_once() -> None:
    """Clicks on the target and departures from it in turn pay as one click; another path pays on its own."""
    back, miss = Pointing(kind="back", target_kind="click", target_box=TARGET), click((99, 150))
    nodes = [N(parent=-1, kind=PROMPT)]
    for path in ([miss, *[click((150, 150)), back] * 10], [click((150, 150)), click((150, 150))]):
        parent = 0
        for pointing in path:
            nodes.append(N(parent=parent, kind=ACTION))
            nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, info={"env": {"pointing": pointing.record()}}))
            parent = len(nodes) - 1
        nodes[-1] = replace(nodes[-1], outcome=Outcome.TERMINATED)
    (paid,) = compute_rewards([build(*nodes)], [PointInBox(weight=1.0)])
    assert paid.returns().tolist() == [1.0, 1.0]
    assert paid.channels["grounding"][[1, 3]].tolist() == [0.5, 0.5]


def test_a_tree_without_pointings_pays_nothing() -> None:
    tree = build(
        N(parent=-1, kind=PROMPT),
        N(parent=0, kind=ACTION),
        N(parent=1, kind=OBSERVATION, info={"env": {"other": 1}}, outcome=Outcome.TERMINATED),
    )
    (paid,) = compute_rewards([tree], [PointInBox(), BoxScore(), RankedPoints()])
    assert paid.returns().tolist() == [0.0]


@pytest.mark.parametrize(
    ("box", "hit", "overlap", "size"),
    [
        ((100, 100, 200, 200), 1, 0.25, 0.125),
        ((140, 140, 160, 160), 1, 0.01, 0.12),
        ((50, 50, 250, 250), 1, 0.0625, 0.11875),
        ((149, 149, 151, 151), 1, 0.0001, 0.118875),
        ((300, 300, 400, 400), 0, 0, 0.1),
    ],
)
def test_the_table_of_boxes(box: Box, hit: int, overlap: float, size: float) -> None:
    assert scored(BoxScore(as_released=True), wrote(box)) == pytest.approx(hit + overlap + size, abs=2e-5)
    assert scored(BoxScore(), wrote(box)) == pytest.approx(hit * (hit + overlap + size), abs=2e-5)


@given(st.tuples(coordinate, coordinate, coordinate, coordinate))
def test_no_box_scores_more_than_the_target(numbers: Box) -> None:
    left, right = sorted(numbers[::2])
    top, bottom = sorted(numbers[1::2])
    for reward in (BoxScore(), BoxScore(as_released=True)):
        assert 0 <= scored(reward, wrote((left, top, right, bottom))) <= scored(reward, wrote(TARGET)) == 1.375


def square(half: int) -> Pointing:
    return wrote((150 - half, 150 - half, 150 + half, 150 + half))


def test_a_hit_alone_leaves_the_size_open_and_the_sum_stops_at_the_target() -> None:
    flat, whole = BoxScore(overlap=0, size=0), BoxScore()
    assert {scored(flat, square(half)) for half in range(1, 100)} == {1.0}
    assert max(range(1, 100), key=lambda half: scored(whole, square(half))) == 50


@pytest.mark.parametrize(
    ("count", "rank", "score"), [(1, 1, 2), (2, 1, 1.707107), (2, 2, 1.5), (4, 4, 1.25), (1, 0, 0), (4, 0, 0.75)]
)
def test_the_table_of_ranked_points(count: int, rank: int, score: float) -> None:
    misses = [(0, 0), (0, 9), (9, 4), (3, 7)][:count]
    points = [(150, 150) if number == rank else miss for number, miss in enumerate(misses, 1)]
    assert scored(RankedPoints(format_point=True), click(*points)) == pytest.approx(score, abs=1e-6)
    assert scored(RankedPoints(), click(*points)) == pytest.approx(score - 1, abs=1e-6)


@given(st.tuples(coordinate, coordinate), st.tuples(coordinate, coordinate), st.integers(2, 9))
def test_points_on_a_line_are_refused(start: tuple[int, int], way: tuple[int, int], count: int) -> None:
    line = [(start[0] + way[0] * step, start[1] + way[1] * step) for step in range(count + 1)]
    assert scored(RankedPoints(), click(*line)) == -1
    assert scored(RankedPoints(), click()) == -1
