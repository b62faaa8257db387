import math

import pytest

from bough.tree import PathScore, path_score


@pytest.mark.parametrize(("by", "expected"), [("mean", 0.73333), ("min", 0.5), ("last", 0.8), ("product", 0.36)])
def test_worked_example(by: PathScore, expected: float) -> None:
    assert path_score([0.9, 0.5, 0.8], by) == pytest.approx(expected, abs=2e-5)


def test_a_path_without_steps_has_no_score() -> None:
    assert math.isnan(path_score([], "mean"))
