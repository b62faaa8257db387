"""DAPO's soft punishment."""

import pytest
from tests.trees import chains

from bough.reward import Overlong, compute_rewards


@pytest.mark.parametrize(("tokens", "paid"), [(2, 0.0), (16384, 0.0), (18432, -0.5), (20480, -1.0), (30000, -1.0)])
def test_the_cards_example(tokens: int, paid: float) -> None:
    (rewarded,) = compute_rewards([chains([1.0], action_tokens=tokens)], (Overlong(),))
    assert rewarded.returns().tolist() == [pytest.approx(paid)]


def test_all_turns_of_a_path_count() -> None:
    (rewarded,) = compute_rewards(
        [chains([1.0, 1.0], turns=[3, 1], action_tokens=2)], (Overlong(limit_tokens=6, buffer_tokens=2),)
    )
    assert rewarded.returns().tolist() == [-1.0, 0.0]


@pytest.mark.parametrize(("tokens", "paid"), [(16384, 0.0), (20480, -1.0), (30000, -3.324219)])
def test_without_a_cap_it_grows_on(tokens: int, paid: float) -> None:
    (rewarded,) = compute_rewards([chains([1.0], action_tokens=tokens)], (Overlong(capped=False),))
    assert rewarded.returns().tolist() == [pytest.approx(paid, abs=1e-6)]


def test_bad_settings() -> None:
    with pytest.raises(ValueError, match=r"Overlong.buffer_tokens: got 7; need at most 6, the limit"):
        Overlong(limit_tokens=6, buffer_tokens=7)
    with pytest.raises(ValueError, match=r"factor: got -1"):
        Overlong(factor=-1.0)
