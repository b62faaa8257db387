import numpy as np
import pytest
from tests.credit.critics import at_actions, episode, fork, judged

from bough.credit import Gae, TurnPpo
from bough.tree import Source


def test_turns_are_the_tokens_of_gae() -> None:
    """The card's case for tokens with each token a turn: whatever else a turn says, its first value counts."""
    tree = episode([3, 1, 2, 1], [0.0, 0.0, 0.0, 1.0])
    values = [0.2, 7, 8, 0.4, 0.6, 9, 0.8]
    (credited,) = TurnPpo(discount=0.9, lam=0.8, whiten=False)([judged(tree, value=values)])
    wanted = [0.397658, 0.33008, 0.264, 0.2]
    assert at_actions(tree, credited.advantage) == pytest.approx(np.repeat(wanted, [3, 1, 2, 1]), abs=2e-5)
    assert credited.turn_advantage == pytest.approx(wanted, abs=2e-5)
    value_targets = [0.597658, np.nan, np.nan, 0.73008, 0.864, np.nan, 1.0]
    assert at_actions(tree, credited.value_targets["value"]) == pytest.approx(value_targets, abs=2e-5, nan_ok=True)


def test_of_turns_of_one_token_it_is_gae() -> None:
    given_tree = judged(episode([1, 1, 1], [0.5, 0.0, 1.0]), value=[0.1, 0.7, 0.3])
    (turn_advantage,), (by_token,) = TurnPpo()([given_tree]), Gae(discount=0.99, lam=0.9)([given_tree])
    assert turn_advantage.advantage == pytest.approx(by_token.advantage, abs=1e-6)
    assert turn_advantage.value_targets["value"] == pytest.approx(
        by_token.value_targets["value"], abs=1e-6, nan_ok=True
    )


def test_a_long_turn_weighs_as_much_in_the_whitening_as_a_short_one() -> None:
    tree = episode([5, 1], [0.0, 1.0])
    (credited,) = TurnPpo()([judged(tree, value=[0.0] * 6)])
    assert credited.turn_advantage is not None
    assert sum(credited.turn_advantage) == pytest.approx(0, abs=1e-6)


def test_a_teachers_turn_is_as_if_it_had_not_been() -> None:
    order = [Source.SAMPLED, Source.FORCED, Source.SAMPLED]
    three = judged(episode([1, 2, 1], [0.0, 0.5, 1.0], sources=order), value=[0.2, np.nan, np.nan, 0.6])
    two = judged(episode([1, 1], [0.5, 1.0]), value=[0.2, 0.6])
    rule = TurnPpo(whiten=False)
    (long,), (short,) = rule([three]), rule([two])
    assert np.delete(long.turn_advantage, 1).tolist() == short.turn_advantage.tolist()
    assert long.turn_advantage[1] == 0


def test_a_shared_turn_has_the_mean_of_its_paths() -> None:
    tree = fork([0.0], [[1.0], [0.0]])
    rule = TurnPpo(discount=1.0, lam=1.0, whiten=False)
    (credited,) = rule([judged(tree, value=[0.5, 9, 0.9, 9, 0.1, 9])])
    assert at_actions(tree, credited.positive) == pytest.approx([0.25, 0.25, 0.1, 0.1, 0, 0])
    value_targets = [0.5, np.nan, 1, np.nan, 0, np.nan]
    assert at_actions(tree, credited.value_targets["value"]) == pytest.approx(value_targets, nan_ok=True)


@pytest.mark.parametrize("field", [{"discount": 1.5}, {"lam": -0.1}])
def test_fields(field: dict[str, float]) -> None:
    (name,) = field
    with pytest.raises(ValueError, match=f"TurnPpo.{name}: got"):
        TurnPpo(**field)
