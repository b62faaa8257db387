import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bough.view import mean_interval, paired, wilson
from bough.view.interval import student_quantile


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_the_table_of_newcombe_1998(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def pairs(both: int, lost: int, won: int, neither: int) -> tuple[list[bool], list[bool]]:
    before = [True] * (both + lost) + [False] * (won + neither)
    after = [True] * both + [False] * lost + [True] * won + [False] * neither
    return before, after


def test_paired_gives_the_published_examples() -> None:
    # Fagerland, Lydersen, Laake, "Recommended tests and confidence intervals for paired binomial proportions",
    # Statistics in Medicine 33 (2014): response before and after consolidation therapy (Cavo et al. 2012), and airway
    # hyper-responsiveness before and after transplantation (Bentur et al. 2009). They subtract the other way round.
    low, high = paired(*pairs(59, 6, 16, 80))
    assert (-high, -low) == pytest.approx((-0.1186, -0.0046), abs=5e-5)
    low, high = paired(*pairs(1, 1, 7, 12))
    assert (-high, -low) == pytest.approx((-0.507, -0.026), abs=5e-4)


@given(successes=st.integers(0, 50), more=st.integers(0, 50), level=st.floats(0.5, 0.999))
@example(successes=0, more=2, level=0.7859549965373105)  # rounds to just above the rate
def test_wilson_holds_the_rate_and_mirrors(successes: int, more: int, level: float) -> None:
    trials = successes + more + 1
    low, high = wilson(successes, trials, level)
    assert 0.0 <= low <= successes / trials <= high <= 1.0
    assert wilson(trials - successes, trials, level) == pytest.approx((1 - high, 1 - low))


def test_wilson_covers_as_often_as_it_says() -> None:
    trials = 60
    for rate in (0.02, 0.1, 0.5, 0.93):
        chance = [math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(trials + 1)]
        covered = sum(p for k, p in enumerate(chance) if wilson(k, trials)[0] <= rate <= wilson(k, trials)[1])
        assert 0.92 < covered < 0.99


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_paired_holds_the_difference_and_mirrors(results: list[tuple[bool, bool]]) -> None:
    before, after = ([pair[at] for pair in results] for at in (0, 1))
    low, high = paired(before, after)
    difference = (sum(after) - sum(before)) / len(results)
    assert -1.0 <= low <= difference + 1e-12
    assert difference - 1e-12 <= high <= 1.0
    assert paired(after, before) == pytest.approx((-high, -low))


def test_pairs_that_agree_make_the_interval_narrower() -> None:
    together = paired(*pairs(45, 5, 5, 45))
    apart = paired(*pairs(25, 25, 25, 25))
    assert together[1] - together[0] < 0.6 * (apart[1] - apart[0])


def test_paired_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(1500):
        easy = rng.random(120)
        before, after = ((easy < rate + 0.2 * rng.normal(size=120)).tolist() for rate in (0.4, 0.5))
        low, high = paired(before, after)
        covered += low <= DIFFERENCE <= high
    assert 0.92 < covered / 1500 < 0.98


def _true_difference() -> float:
    """Of the success rates above, by a fine sum over what is drawn."""
    normal = np.linspace(-6, 6, 20001)
    weight = np.exp(-normal * normal / 2)
    before, after = (np.sum(weight * np.clip(rate + 0.2 * normal, 0, 1)) / weight.sum() for rate in (0.4, 0.5))
    return float(after - before)


DIFFERENCE = _true_difference()


def test_no_trials_tell_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert paired([], []) == (-1.0, 1.0)


def test_wrong_arguments_are_named() -> None:
    for successes in (-1, 3):
        with pytest.raises(ValueError, match=f"got {successes} successes in 2 trials"):
            wilson(successes, 2)
    with pytest.raises(ValueError, match=r"level 1\.0"):
        wilson(1, 2, 1.0)
    with pytest.raises(ValueError, match="got 1 results before and 2 after"):
        paired([True], [True, False])


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (299, 1.9679)],
)
def test_quantiles_of_student_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert student_quantile(0.975, degrees) == pytest.approx(quantile, abs=6e-5)
    assert student_quantile(0.5, degrees) == pytest.approx(0, abs=1e-9)


def test_the_interval_of_a_mean() -> None:
    # The first ten differences of Student's paper: sleep gained by two drugs, mean 1.58, standard deviation 1.23.
    gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    assert mean_interval(gained) == pytest.approx((0.7001, 2.4599), abs=1e-4)
    assert mean_interval([0.3]) == (-math.inf, math.inf)
    assert mean_interval([0.5, 0.5, 0.5]) == (0.5, 0.5)
    with pytest.raises(ValueError, match="mean_interval: got level 1; need 0 < level < 1"):
        mean_interval(gained, level=1)
