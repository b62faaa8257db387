import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bough.engine.sampler import draw, log_distribution, sample, uniforms


def _uniforms(seeds: list[int], indices: list[int]) -> np.ndarray:
    return uniforms(np.array(seeds, dtype=np.uint64), np.array(indices, dtype=np.int64))


def test_uniforms_are_uniform_over_seeds_and_over_indices() -> None:
    for numbers in (_uniforms(list(range(20_000)), [0] * 20_000), _uniforms([7] * 20_000, list(range(20_000)))):
        assert numbers.min() >= 0
        assert numbers.max() < 1
        counts = np.histogram(numbers, bins=20, range=(0, 1))[0]
        # Chi-square with 19 degrees of freedom: above 43.8 once in a thousand.
        assert ((counts - 1000) ** 2 / 1000).sum() < 43.8
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.03


def test_uniforms_of_neighbouring_seeds_do_not_repeat_each_other() -> None:
    # The i-th draw of seed s must not be the (i - 1)-th of seed s + 1.
    grid = _uniforms([s for s in range(50) for _ in range(50)], [i for _ in range(50) for i in range(50)])
    assert len(set(grid.tolist())) == 2500


def test_a_uniform_depends_on_its_own_seed_and_index_alone() -> None:
    assert _uniforms([3, 2**64 - 1], [5, 0])[1] == _uniforms([2**64 - 1], [0])[0]


def test_top_p_by_hand() -> None:
    logits = torch.tensor([[0.1, 0.4, 0.3, 0.2]]).log()
    half = torch.tensor([0.5], dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    # 0.4 does not reach 0.5; 0.4 + 0.3 does.
    kept = log_distribution(logits, one, half).exp()
    torch.testing.assert_close(kept, torch.tensor([[0, 4 / 7, 3 / 7, 0]], dtype=torch.float64), atol=1e-7, rtol=0)
    # Temperature 1/2 squares the probabilities: 1, 16, 9, 4 of 30; the first alone exceeds a half.
    kept = log_distribution(logits, half, half).exp()
    assert kept.tolist() == [[0, 1, 0, 0]]


def test_top_p_of_equals_keeps_the_first_in_the_vocabulary() -> None:
    kept = log_distribution(torch.zeros(1, 4), torch.ones(1).double(), torch.tensor([0.5]).double()).exp()
    assert kept.tolist() == [[0.5, 0.5, 0, 0]]


def test_top_p_of_one_keeps_everything_beside_a_row_that_cuts() -> None:
    logits = torch.tensor([[0.0, -60.0, -80.0]] * 2)
    kept = log_distribution(logits, torch.ones(2).double(), torch.tensor([1.0, 0.9]).double())
    assert kept[0].isfinite().all()
    assert kept[1].isfinite().tolist() == [True, False, False]


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    probability = torch.tensor([[0, 0.5, 0, 0.5, 0]], dtype=torch.float64).expand(3, -1)
    token = draw(probability, torch.tensor([0.0, 0.5, 1 - 2.0**-52], dtype=torch.float64))
    assert token.tolist() == [1, 3, 3]


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.6, 1.0), (1.0, 0.7), (1.7, 0.9)])
def test_frequencies_match_the_distribution(temperature: float, top_p: float) -> None:
    logits = torch.randn(1, 12, generator=torch.Generator().manual_seed(1)) * 1.5
    n = 20_000
    uniform = torch.from_numpy(uniforms(np.arange(n, dtype=np.uint64), np.full(n, 3)))
    wanted = log_distribution(logits, torch.tensor([temperature]).double(), torch.tensor([top_p]).double()).exp()[0]
    token, logprob, entropy = sample(
        logits.expand(n, -1), uniform, torch.full((n,), temperature).double(), torch.full((n,), top_p).double()
    )
    seen = token.bincount(minlength=12)
    assert seen[wanted == 0].sum() == 0
    expected = wanted[wanted > 0] * n
    chi_square = ((seen[wanted > 0] - expected) ** 2 / expected).sum()
    freedom = len(expected) - 1
    # Four standard deviations above the mean of a chi-square.
    assert chi_square < freedom + 4 * math.sqrt(2 * freedom)
    torch.testing.assert_close(logprob.exp(), wanted[token])
    torch.testing.assert_close(entropy, torch.special.entr(wanted).sum().expand(n))


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(0, 8))
def test_a_row_does_not_depend_on_the_others(seed: int, rows: int, row: int) -> None:
    row %= rows
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, 40, generator=generator)
    uniform, temperature, top_p = torch.rand(3, rows, generator=generator, dtype=torch.float64)
    greedy = torch.arange(rows) % 3 == 0
    top_p = top_p.clamp(min=0.1)
    many = sample(logits, uniform, temperature, top_p, greedy)
    one = sample(*(x[row : row + 1] for x in (logits, uniform, temperature, top_p, greedy)))
    for a, b in zip(many, one, strict=True):
        assert a[row] == b[0]


def test_greedy_takes_the_first_of_the_most_likely() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0], [1.0, 0.0, 0.0]])
    ones = torch.ones(2, dtype=torch.float64)
    token, logprob, entropy = sample(logits, 0.9 * ones, ones, greedy=torch.tensor([True, False]))
    assert token[0] == 1
    assert (logprob[0], entropy[0]) == (0, 0)
    assert logprob[1] < 0 < entropy[1]


@pytest.mark.parametrize("greedy", [False, True])
def test_broken_logits_show(greedy: bool) -> None:
    one = torch.ones(1, dtype=torch.float64)
    for bad in (math.nan, math.inf):
        logits = torch.tensor([[0.0, bad, 0.0]])
        _, logprob, _ = sample(logits, 0.3 * one, one, greedy=torch.tensor([True]) if greedy else None)
        assert not logprob.isfinite().any()
