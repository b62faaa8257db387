"""What a policy that climbs a pointing reward becomes: the size of its boxes, and the number of its points."""

import random
from collections.abc import Callable

import pytest

from bough.reward import BoxScore, RankedPoints
from bough.screen import Box, Pointing, Pointings

TARGET: Box = (400, 400, 500, 500)
OTHER = (50, 50)
DRAWS = 400


def box(middle: tuple[float, float], half: int) -> Pointing:
    x, y = map(round, middle)
    return Pointing(
        kind="click",
        points=((x, y),),
        box=(x - half, y - half, x + half, y + half),
        target_kind="click",
        target_box=TARGET,
        screen=(1000, 1000),
    )


def climbed(mean: Callable[[int], float], start: int, step: int) -> int:
    """The value that no step up or down improves."""
    here = start
    while (best := max((here, here - step, here + step), key=mean)) != here and best > 0:
        here = best
    return here


def size(reward: BoxScore, error: Callable[[int], float], seed: int) -> int:
    """Half the side of the boxes that earn the most, for centres with an error of this size in pixels."""
    rng = random.Random(seed)
    luck = [(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(DRAWS)]

    def mean(half: int) -> float:
        if half <= 0:
            return -1.0
        far = error(half)
        boxes = [box((450 + far * x, 450 + far * y), half) for x, y in luck]
        return float(reward.score(Pointings.of(*boxes)).mean())

    return climbed(mean, 90, 4)


@pytest.mark.parametrize("seed", range(5))
def test_boxes(seed: int) -> None:
    """With borders that err by their size hits alone shrink boxes; with uncertain centres overlap alone grows them.

    The sum of all terms stays at the target, whose half side is 50.
    """
    hits, overlaps, whole = BoxScore(overlap=0, size=0), BoxScore(overlap=1, size=0, as_released=True), BoxScore()
    assert size(hits, by_size, seed) < 40
    assert size(overlaps, uncertain, seed) > 60
    assert 44 <= size(whole, sure, seed) <= 56
    assert abs(size(whole, uncertain, seed) - 50) < abs(size(overlaps, uncertain, seed) - 50)


def by_size(half: int) -> float:
    return 0.6 * half


def uncertain(half: int) -> float:
    del half
    return 80.0


def sure(half: int) -> float:
    del half
    return 5.0


@pytest.mark.parametrize("seed", range(5))
def test_points_for_a_name_with_two_candidates(seed: int) -> None:
    """A target may be in either of two places: one point finds it half of the time, two find it always."""
    rng, reward = random.Random(seed), RankedPoints()
    places = [(450, 450), OTHER, (700, 120), (20, 800), (900, 333)]
    draws = [(rng.sample(places[:2], 2), rng.choice(places[:2])) for _ in range(DRAWS)]

    def answers(count: int) -> list[Pointing]:
        return [
            Pointing(
                kind="click",
                points=(*first, *places[2:])[:count],
                target_kind="click",
                target_box=(at[0] - 9, at[1] - 9, at[0] + 9, at[1] + 9),
            )
            for first, at in draws
        ]

    def mean(count: int) -> float:
        return float(reward.score(Pointings.of(*answers(count))).mean()) if 0 < count <= len(places) else -2.0

    assert climbed(mean, 1, 1) == climbed(mean, 5, 1) == 2
    found = [sum(each.first_hit > 0 for each in answers(count)) / DRAWS for count in (1, 2)]
    assert 0.4 < found[0] < 0.6
    assert found[1] == 1.0


def test_a_point_moved_by_a_pixel_is_still_on_a_line() -> None:
    points = ((0, 0), (50, 51), (100, 100))
    seen = Pointings.of(Pointing(kind="click", points=points, target_kind="click", target_box=(0, 0, 9, 9)))
    assert RankedPoints().score(seen) > 0, "the paper's test is exact"
    assert RankedPoints(near_px=1.0).score(seen) == -1.0
    with pytest.raises(ValueError, match=r"RankedPoints.near_px: got -1"):
        RankedPoints(near_px=-1)
