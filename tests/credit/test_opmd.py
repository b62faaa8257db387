import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.credit.seen import paths_of
from tests.trees import chains, rewarded

from bough.credit import OpmdBaseline


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (OpmdBaseline(), [0.5, 0.0, -0.5]),
        (OpmdBaseline(baseline="log_mean_exp"), [0.418343, -0.081657, -0.581657]),
        (OpmdBaseline(baseline="log_mean_exp", tau=0.1), [0.109185, -0.390815, -0.890815]),
    ],
)
def test_worked_example_beside_another_task(rule: OpmdBaseline, expected: list[float]) -> None:
    trees = [rewarded(chains([4.0, 5.0], task="b")), rewarded(chains([1.0, 0.5, 0.0], task="a"))]
    assert paths_of(rule(trees)[1]) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("baseline", ["mean", "log_mean_exp"])
def test_a_group_of_one_keeps_its_return_only_in_released_code(baseline: str) -> None:
    alone = [rewarded(chains([1.0], task="a")), rewarded(chains([3.0, 3.0], task="b"))]
    ours, released = (OpmdBaseline(baseline=baseline, as_released=quirk) for quirk in (False, True))  # type: ignore[arg-type]
    assert [paths_of(each) for each in ours(alone)] == [[0.0], [0.0, 0.0]]
    assert [paths_of(each) for each in released(alone)] == [[1.0], [0.0, 0.0]]


@given(st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=8), st.floats(0.05, 50))
def test_the_soft_mean_lies_between_mean_and_maximum(returns: list[float], tau: float) -> None:
    given_, task = np.asarray(returns), np.zeros(len(returns), dtype=np.int64)
    baseline = given_ - OpmdBaseline(baseline="log_mean_exp", tau=tau).advantages(given_, task)
    assert np.ptp(baseline) < 1e-9
    assert given_.mean() - 1e-9 <= baseline[0] <= given_.max() + 1e-9


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8))
def test_a_hot_soft_mean_is_the_mean(returns: list[float]) -> None:
    given_, task = np.asarray(returns), np.zeros(len(returns), dtype=np.int64)
    hot = OpmdBaseline(baseline="log_mean_exp", tau=1e5).advantages(given_, task)
    assert hot == pytest.approx(OpmdBaseline().advantages(given_, task), abs=1e-4)


def test_tau_is_positive() -> None:
    with pytest.raises(ValueError, match=r"OpmdBaseline.tau: got 0.0; need a number above 0"):
        OpmdBaseline(tau=0.0)
