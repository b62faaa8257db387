"""Which paths of a tree are trained on."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies
from tests.trees import chains, rewarded

from bough.credit import Grpo
from bough.hooks import PickPaths
from bough.hooks.hook import HookSetup
from trees import as_replayed

TEN = [0.0] * 9 + [1.0]


@given(
    returns=strategies.lists(strategies.sampled_from([0.0, 1.0]), min_size=1, max_size=12),
    keep=strategies.integers(1, 12),
    choice=strategies.sampled_from(["random", "success", "balanced"]),
    seed=strategies.integers(0, 99),
)
def test_what_holds_for_every_choice(returns: list[float], keep: int, choice: str, seed: int) -> None:
    picked = PickPaths(keep=keep, choice=choice).pick(returns, np.random.default_rng(seed))  # type: ignore[arg-type]
    assert picked == sorted(set(picked))
    assert len(picked) == min(keep, len(returns))
    good = sum(returns[path] for path in picked)
    if choice == "success":
        assert (good > 0) == (sum(returns) > 0)
    if choice == "balanced":
        bad = len(picked) - good
        spare_good, spare_bad = sum(returns) - good, len(returns) - sum(returns) - bad
        assert abs(good - bad) <= 1 or not (spare_good if good < bad else spare_bad)


def test_the_examples_in_words() -> None:
    luck = np.random.default_rng(0)
    assert all(9 in PickPaths(keep=4).pick(TEN, luck) for _ in range(50))
    often = Counter(path for _ in range(4000) for path in PickPaths(keep=4, choice="random").pick(TEN, luck))
    assert [often[path] / 4000 for path in range(10)] == pytest.approx([0.4] * 10, abs=0.04)
    half = PickPaths(keep=4, choice="balanced").pick([0.0] * 5 + [1.0] * 5, luck)
    assert sum(path >= 5 for path in half) == 2


def test_the_success_that_stays_is_any_of_them() -> None:
    luck = np.random.default_rng(0)
    often = Counter(path for _ in range(2000) for path in PickPaths(keep=1).pick([0.0, 1.0, 1.0], luck))
    assert often[0] == 0
    assert often[1] / 2000 == pytest.approx(0.5, abs=0.05)


def test_what_is_cut_out_is_in_no_baseline() -> None:
    picker = PickPaths(keep=2).build(HookSetup(vocab_tokens=10))
    trees = [rewarded(chains(TEN)), rewarded(chains([1.0, 0.0])), as_replayed(rewarded(chains(TEN)))]
    cut, small, old = picker.transform(trees, 0)
    assert sorted(cut.returns().tolist()) == [0.0, 1.0]
    assert small is trees[1]
    assert old is trees[2]
    (credited,) = Grpo()([cut])
    assert credited.positive.max() == pytest.approx(0.7071, abs=2e-5)
    assert picker.observe() == {"pick/kept": 14.0}
    assert picker.observe() == {"pick/kept": 0.0}
    assert picker.data is None


def test_ranges() -> None:
    with pytest.raises(ValueError, match=r"PickPaths\.keep: got 0; need at least 1"):
        PickPaths(keep=0)
