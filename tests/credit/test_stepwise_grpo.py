import pytest
from tests.credit.seen import paid, turns_of

from bough.credit import StepwiseGrpo


@pytest.mark.parametrize(("share_out", "expected"), [(False, (0.707106, -0.707106)), (True, (0.353553, -0.235702))])
def test_worked_example(share_out: bool, expected: tuple[float, float]) -> None:
    (credited,) = StepwiseGrpo(share_out=share_out)([paid([0.0, 1.0], [0.0, 0.0, 0.0])])
    two, three = turns_of(credited)
    assert two == pytest.approx([expected[0]] * 2, abs=2e-5)
    assert three == pytest.approx([expected[1]] * 3, abs=2e-5)


def test_only_the_last_turn_is_looked_at() -> None:
    (credited,) = StepwiseGrpo()([paid([7.0, 1.0], [0.0, 1.0], [-5.0, 0.0])])
    assert [path[0] for path in turns_of(credited)] == pytest.approx([0.577349, 0.577349, -1.154699], abs=2e-5)


def test_a_group_of_one_keeps_its_reward_only_in_released_code() -> None:
    alone = [paid([0.0, 0.5], task="a"), paid([1.0], [1.0], task="b")]
    one, tied = StepwiseGrpo()(alone)
    assert turns_of(one) + turns_of(tied) == [[0.0, 0.0], [0.0], [0.0]]
    one, tied = StepwiseGrpo(as_released=True)(alone)
    assert turns_of(one)[0] == pytest.approx([0.5, 0.5], abs=2e-5)
    assert turns_of(tied) == [[0.0], [0.0]]


def test_epsilon_is_positive() -> None:
    with pytest.raises(ValueError, match=r"StepwiseGrpo.epsilon: got 0.0"):
        StepwiseGrpo(epsilon=0.0)
