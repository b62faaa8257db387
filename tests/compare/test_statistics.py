"""The statistics of comparisons against SciPy, exact answers, and simulated runs without a difference."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from bough.compare.statistics import (
    Difference,
    Part,
    bootstrap_interval,
    difference,
    holm,
    improvement,
    mean_difference,
)

random = np.random.default_rng(3)
ONE, OTHER = random.normal(0.3, 1, (6, 1)), random.normal(0, 2, (6, 1))


def test_seeds_alone_are_the_t_test_of_pairs() -> None:
    found, expected = difference(ONE, OTHER), stats.ttest_rel(ONE[:, 0], OTHER[:, 0])
    assert found.p == pytest.approx(expected.pvalue)
    assert found.interval(0.9) == pytest.approx(expected.confidence_interval(0.9))
    assert (found.mean, found.degrees) == pytest.approx((float((ONE - OTHER).mean()), 5))


def test_tasks_alone_are_the_t_test_of_pairs() -> None:
    found, expected = difference(ONE.T, OTHER.T), stats.ttest_rel(ONE[:, 0], OTHER[:, 0])
    assert found.p == pytest.approx(expected.pvalue)
    assert found.seeds == ()


def test_other_seeds_are_the_test_of_welch() -> None:
    found, expected = difference(ONE, OTHER[:4], same_seeds=False), stats.ttest_ind(ONE, OTHER[:4], equal_var=False)
    assert found.p == pytest.approx(float(expected.pvalue[0]))
    assert found.degrees == pytest.approx(float(expected.df[0]))


def test_seeds_and_tasks_add_their_variances() -> None:
    one, other = random.normal(0, 1, (4, 7)), random.normal(0, 1, (4, 7))
    found, gap = difference(one, other), one - other
    rows, columns = gap.mean(axis=1).var(ddof=1) / 4, gap.mean(axis=0).var(ddof=1) / 7
    assert found.error**2 == pytest.approx(rows + columns)
    assert found.degrees == pytest.approx(3)


def test_what_never_varies_has_no_p_value() -> None:
    found = difference(np.ones((3, 4)), np.zeros((3, 4)))
    assert found.mean == 1
    assert np.isnan([found.p, *found.interval(), found.detectable()]).all()
    assert np.isnan(difference(np.ones((1, 1)), np.zeros((1, 1))).p)


def test_the_mean_over_worlds_has_the_error_of_independent_differences() -> None:
    several = [difference(random.normal(0, 1, (5, 8)), random.normal(0, 1, (5, 8))) for _ in range(3)]
    found = mean_difference(several)
    assert found.mean == pytest.approx(np.mean([each.mean for each in several]))
    assert found.error == pytest.approx(np.sqrt(sum(each.error**2 for each in several)) / 3)


def test_the_bootstrap_of_seeds_is_that_over_all_resamples() -> None:
    values = np.asarray([0.1, 0.4, 0.5, 0.9])
    every = [np.mean(each) for each in product(values, repeat=4)]
    low, high = bootstrap_interval(values[:, None])
    assert (low, high) == pytest.approx(tuple(np.quantile(every, [0.025, 0.975])), abs=0.02)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(1)).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_the_bootstrap_draws_seeds_and_tasks() -> None:
    rows, columns = np.asarray([0.1, 0.4, 0.5, 0.9])[:, None], np.asarray([-1.0, 0.0, 2.0])
    every = [
        np.mean(one) + np.mean(other) for one in product(rows[:, 0], repeat=4) for other in product(columns, repeat=3)
    ]
    for end, share in zip(bootstrap_interval(rows + columns), (0.025, 0.975), strict=True):
        below, to = np.mean(np.asarray(every) < end - 1e-9), np.mean(np.asarray(every) < end + 1e-9)
        assert below - 0.005 < share < to + 0.005
    assert bootstrap_interval(np.full((1, 1), 0.25)) == (0.25, 0.25)


def test_the_bootstrap_equals_that_of_arch() -> None:
    arch = pytest.importorskip("arch.bootstrap", reason="needs arch: pip install arch")
    values = random.normal(0, 1, 9)
    theirs = arch.IIDBootstrap(values, seed=2).conf_int(np.mean, reps=10_000, method="percentile")[:, 0]
    assert bootstrap_interval(values[:, None]) == pytest.approx(tuple(theirs), abs=0.05)


def test_improvement_is_the_statistic_of_mann_and_whitney() -> None:
    one, other = np.asarray([0.5, 0.5, 0.75, 1.0]), np.asarray([0.5, 0.25, 0.75])
    assert improvement(one, other) == pytest.approx(stats.mannwhitneyu(one, other).statistic / 12)
    assert improvement(one, one) == 0.5
    assert improvement(one + 1, other) == 1


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    found = holm([0.02, float("nan"), 0.5, 0.03])
    assert found[:1] + found[2:] == pytest.approx([0.06, 0.5, 0.06])
    assert np.isnan(found[1])


@pytest.mark.parametrize("others", [(), (Part(variance=0.04, degrees=4),)])
def test_a_detectable_difference_is_found_in_four_of_five_comparisons(others: tuple[Part, ...]) -> None:
    found = Difference(mean=0, seeds=(Part(variance=0.04, degrees=3), *others), tasks=())
    assert found.degrees == pytest.approx(0.08**2 / (0.04**2 / 3 + 0.04**2 / 4) if others else 3)
    size, limit = found.detectable(0.01) / found.error, stats.t.ppf(0.995, found.degrees)
    assert stats.nct.sf(limit, found.degrees, size) == pytest.approx(0.8, abs=1e-6)


def test_more_seeds_show_smaller_differences() -> None:
    found = difference(ONE, OTHER)
    assert found.needed_seeds(found.detectable() * 1.01, seeds=6) == 6
    more = found.needed_seeds(found.detectable() / 3, seeds=6)
    assert 25 < more < 60
    assert found.needed_seeds(1e-6, seeds=6) == 0
    assert difference(ONE.T, OTHER.T).needed_seeds(1e-6, seeds=1) == 0


def successes(generator: np.random.Generator, tasks: np.ndarray, ability: float = 0.0) -> np.ndarray:
    """Success of five runs of a method: seeds and tasks differ in difficulty."""
    seeds = generator.normal(0, 0.5, (5, 1))
    return (generator.random((5, len(tasks))) < 1 / (1 + np.exp(-(tasks + seeds + ability)))).astype(float)


def test_equal_methods_differ_in_at_most_one_of_twenty_comparisons() -> None:
    generator = np.random.default_rng(0)
    found = []
    for _ in range(200):
        tasks = generator.normal(0, 1.5, 60)
        found.append(difference(successes(generator, tasks), successes(generator, tasks)).p < 0.05)
    assert 1 <= sum(found) <= 10


def test_a_large_difference_is_found() -> None:
    generator = np.random.default_rng(1)
    tasks = generator.normal(0, 1.5, 60)
    assert difference(successes(generator, tasks, 2.0), successes(generator, tasks)).p < 0.01
