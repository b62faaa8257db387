from itertools import chain

import pytest
from tests.credit.seen import paid, turns_of
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import StepGrpo
from bough.tree import Outcome

HALF = 0.707106


@pytest.mark.parametrize(
    ("discount", "expected"),
    [(0.0, [[HALF, -HALF], [-HALF, HALF]]), (1.0, [[0.0, -HALF], [0.0, HALF]]), (0.5, [[HALF, -HALF], [-HALF, HALF]])],
)
def test_worked_example(discount: float, expected: list[list[float]]) -> None:
    (credited,) = StepGrpo(discount=discount)([paid([1.0, 0.0], [0.0, 1.0])])
    for said, wanted in zip(turns_of(credited), expected, strict=True):
        assert said == pytest.approx(wanted, abs=2e-5)


def test_turns_are_compared_with_those_that_got_as_far() -> None:
    """The third turn of the first path has no peer, its second one peer, its first two of them."""
    (credited,) = StepGrpo(std="none")([paid([1.0, 1.0, 9.0], [0.0], [0.0, 3.0])])
    assert list(chain.from_iterable(turns_of(credited))) == pytest.approx([2 / 3, -1.0, 0.0, -1 / 3, -1 / 3, 1.0])


def test_tasks_are_apart() -> None:
    credited = StepGrpo()([paid([1.0], task="a"), paid([0.0], task="b"), paid([0.0], task="a")])
    assert [turns_of(each)[0][0] for each in credited] == pytest.approx([HALF, 0.0, -HALF], abs=2e-5)


def test_a_shared_turn_stands_once_for_each_path() -> None:
    """Two paths share a first turn paid 1, a third pays 0: mean 2 / 3, not 1 / 2."""
    end = Outcome.TERMINATED
    nodes = [N(parent=-1, kind=PROMPT), N(parent=0, kind=ACTION, env_reward=1.0), N(parent=1, kind=OBSERVATION)]
    nodes += [N(parent=2, kind=ACTION, outcome=end), N(parent=2, kind=ACTION, outcome=end)]
    nodes += [N(parent=0, kind=ACTION, outcome=end)]
    (credited,) = StepGrpo(std="none")([rewarded(build(*nodes))])
    assert list(chain.from_iterable(turns_of(credited))) == pytest.approx([1 / 3, 0.0, 1 / 3, 0.0, -2 / 3])
    assert credited.positive[1] == pytest.approx(1 / 3)


@pytest.mark.parametrize(("field", "value"), [("discount", 1.5), ("discount", -0.1), ("epsilon", 0.0)])
def test_fields_are_checked(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"StepGrpo.{field}: got {value}"):
        StepGrpo(**{field: value})  # type: ignore[arg-type]


def test_one_deviation_for_the_whole_batch() -> None:
    """Turns paid 1 and 0, then .1 and 0: the deviation of all four is .485627."""
    (turn_advantage,) = StepGrpo()([paid([1.0, 0.1], [0.0, 0.0])])
    assert list(chain.from_iterable(turns_of(turn_advantage))) == pytest.approx([HALF, HALF, -HALF, -HALF], abs=2e-5)
    (by_batch,) = StepGrpo(std="batch")([paid([1.0, 0.1], [0.0, 0.0])])
    expected = [0.5 / 0.485627, 0.05 / 0.485627, -0.5 / 0.485627, -0.05 / 0.485627]
    assert list(chain.from_iterable(turns_of(by_batch))) == pytest.approx(expected, abs=2e-5)
