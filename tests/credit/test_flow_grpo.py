import numpy as np
import pytest
from hypothesis import given
from tests.credit.seen import paths_of
from tests.trees import chains, random_tree, rewarded, seeds

from bough.credit import FlowGrpo, Grpo


def test_statistics_are_over_paths_and_over_turns_in_released_code() -> None:
    trees = [rewarded(chains([1.0, 0.0], turns=(3, 1)))]
    assert paths_of(FlowGrpo()(trees)[0]) == pytest.approx([0.707106, -0.707106], abs=2e-5)
    assert paths_of(FlowGrpo(as_released=True)(trees)[0]) == pytest.approx([0.499999, -1.499997], abs=2e-5)


def test_a_turn_that_is_alone_keeps_its_return_only_in_released_code() -> None:
    alone = [rewarded(chains([0.5], task="a")), rewarded(chains([0.5], turns=2, task="b"))]
    assert [paths_of(each) for each in FlowGrpo()(alone)] == [[0.0], [0.0]]
    one, two = (paths_of(each) for each in FlowGrpo(as_released=True)(alone))
    assert one == pytest.approx([0.5], abs=2e-5)
    assert two == [0.0]


@given(seeds())
def test_it_is_grpo(rng: np.random.Generator) -> None:
    trees = [rewarded(random_tree(rng, task=task)) for task in ("a", "b", "a")]
    for one, other in zip(FlowGrpo()(trees), Grpo()(trees), strict=True):
        assert np.array_equal(one.positive, other.positive)
        assert np.array_equal(one.negative, other.negative)


def test_epsilon_is_positive() -> None:
    with pytest.raises(ValueError, match=r"FlowGrpo.epsilon: got 0.0"):
        FlowGrpo(epsilon=0.0)
