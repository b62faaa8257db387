import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.credit.seen import paid, paths_of
from tests.trees import chains, rewarded

from bough.credit import Grpo, StratifiedGrpo
from bough.needs import annotation, needs_of

RETURNS = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
STRATA = [1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("blend", "expected"),
    [
        (1.0, [0.707106, -0.707106, 0.577349, 0.577349, -1.154699, 0.0]),
        (0.0, [0.912869, -0.912869, 0.912869, 0.912869, -0.912869, -0.912869]),
        (0.8, [0.748258, -0.748258, 0.644453, 0.644453, -1.106333, -0.182574]),
    ],
)
def test_worked_example(blend: float, expected: list[float]) -> None:
    (by_turns,) = StratifiedGrpo(blend=blend)([rewarded(chains(RETURNS, turns=STRATA))])
    assert paths_of(by_turns) == pytest.approx(expected, abs=2e-5)


def test_strata_by_how_often_a_path_carries_a_mark() -> None:
    """Four turns each; the strata are how many of them searched."""
    rewards = [[0.0, 0.0, 0.0, last] for last in RETURNS]
    infos = [[{"search": turn < count} for turn in range(4)] for count in STRATA]
    (credited,) = StratifiedGrpo(mark="search")([paid(*rewards, infos=infos)])
    expected = [0.748258, -0.748258, 0.644453, 0.644453, -1.106333, -0.182574]
    assert paths_of(credited) == pytest.approx(expected, abs=2e-5)


def test_tasks_are_apart_and_those_alone_get_nothing() -> None:
    trees = [
        rewarded(chains([1.0, 0.0], turns=(1, 1), task="a")),
        rewarded(chains([5.0, 5.0], turns=(1, 1), task="b")),
        rewarded(chains([9.0], turns=1, task="c")),
    ]
    a, b, c = StratifiedGrpo()(trees)
    assert paths_of(a) == pytest.approx([0.707106, -0.707106], abs=2e-5)
    assert paths_of(b) + paths_of(c) == [0.0, 0.0, 0.0]


@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 2)), min_size=1, max_size=9))
def test_paths_are_only_compared_within_their_stratum(given_paths: list[tuple[float, int]]) -> None:
    returns, strata = (np.asarray(column) for column in zip(*given_paths, strict=True))
    returns = returns.round(3)
    task = np.zeros(len(returns), dtype=np.int64)
    own = StratifiedGrpo(blend=1.0).advantages(returns, task, strata)
    for stratum in set(strata.tolist()):
        expected = Grpo().advantages(returns[strata == stratum])
        assert own[strata == stratum] == pytest.approx(expected, abs=1e-9)


def test_what_it_needs() -> None:
    assert needs_of(StratifiedGrpo()) == needs_of(StratifiedGrpo(mark="valid")) == frozenset()
    assert needs_of(StratifiedGrpo(mark="search")) == {annotation("search")}


@pytest.mark.parametrize(("field", "value"), [("blend", 1.1), ("blend", -0.1), ("epsilon", 0.0)])
def test_fields_are_checked(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"StratifiedGrpo.{field}: got {value}"):
        StratifiedGrpo(**{field: value})  # type: ignore[arg-type]
