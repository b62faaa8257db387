import math

import pytest
from tests.credit.seen import paths_of
from tests.trees import chains, rewarded

from bough.credit import AsymRe, dr_grpo


def test_worked_example() -> None:
    (credited,) = AsymRe()([rewarded(chains([1.0, 0.5, 0.0]))])
    assert paths_of(credited) == pytest.approx([0.6, 0.1, -0.4], abs=2e-5)


def test_without_a_shift_it_is_the_plain_mean() -> None:
    trees = [rewarded(chains([1.0, 0.5, 0.1]))]
    assert paths_of(AsymRe(shift=0.0)(trees)[0]) == paths_of(dr_grpo()(trees)[0])


def test_ties_are_above_the_baseline_and_a_group_of_one_has_none() -> None:
    trees = [rewarded(chains([2.0, 2.0], task="a")), rewarded(chains([1.0], task="b"))]
    tied, alone = AsymRe()(trees)
    assert paths_of(tied) == pytest.approx([0.1, 0.1])
    assert paths_of(alone) == [0.0]
    assert paths_of(AsymRe(as_released=True)(trees)[1]) == [1.0]


def test_the_shift_is_finite() -> None:
    with pytest.raises(ValueError, match=r"AsymRe.shift: got nan; need a finite number"):
        AsymRe(shift=math.nan)
