from dataclasses import replace

import numpy as np
import pytest
from tests.credit.critics import at_actions, episode, fork, judged

from bough.credit import Poad, ntpo
from bough.tree import Credited, Source

CARD = judged(episode([2, 3], [0.0, 1.0]), value=[0.1, 0.2, 0.3, 0.4, 0.5])
RULE = Poad(discount=0.9, lam=0.8, whiten=False)


def said(rule: Poad) -> list[float]:
    (credited,) = rule([CARD])
    return at_actions(credited.tree, credited.advantage)


def test_the_cards_case() -> None:
    """Lambda acts between actions only; the released code, which the card ran, has it inside them too."""
    assert said(RULE) == pytest.approx([0.674, 0.574, 0.7, 0.6, 0.5], abs=2e-5)
    assert said(replace(RULE, as_released=True)) == pytest.approx([0.444, 0.43, 0.5, 0.5, 0.5], abs=2e-5)


def test_its_other_backups() -> None:
    token, last = replace(RULE, backup="token"), replace(RULE, backup="last")
    assert said(token) == pytest.approx([0.314536, 0.325744, 0.3552, 0.41, 0.5], abs=2e-5)
    assert said(last) == pytest.approx([0.444136, 0.505744, 0.3552, 0.41, 0.5], abs=2e-5)
    assert replace(ntpo(), discount=0.9, lam=0.8, whiten=False) == token


def with_length(rule: Poad, tokens: int) -> Credited:
    """Two actions, the second of so many tokens; the critic says 0.5 of everything."""
    (credited,) = rule([judged(episode([1, tokens], [0.0, 1.0]), value=[0.5] * (1 + tokens))])
    return credited


def test_how_many_tokens_an_action_has_is_no_measure_of_time() -> None:
    """In the released code lambda decays inside an action: what comes after a long one is far from what was before."""
    value_targets = [float(with_length(RULE, tokens).value_targets["value"][1]) for tokens in (1, 2, 50)]
    assert value_targets == pytest.approx([value_targets[0]] * 3, abs=1e-6)
    faded = [
        float(with_length(replace(RULE, as_released=True), tokens).value_targets["value"][1]) for tokens in (1, 2, 50)
    ]
    assert faded[0] > faded[1] > faded[2]


@pytest.mark.parametrize("rule", [RULE, replace(RULE, backup="token"), replace(RULE, backup="last")])
def test_a_teachers_turn_is_as_if_it_had_not_been(rule: Poad) -> None:
    order = [Source.SAMPLED, Source.TEACHER, Source.SAMPLED]
    three = episode([2, 4, 3], [0.0, 0.0, 1.0], sources=order)
    (credited,) = rule([judged(three, value=[0.1, 0.2, 5, 5, 5, 5, 0.3, 0.4, 0.5])])
    kept = np.delete(np.asarray(at_actions(three, credited.advantage)), [2, 3, 4, 5])
    assert kept.tolist() == said(rule)


def test_the_last_backup_ends_where_a_path_ends() -> None:
    rule = replace(RULE, backup="last")
    (alone,) = rule([CARD])
    beside = rule([CARD, judged(episode([1, 1], [1.0, 0.0]), value=[3.0, 4.0])])
    assert beside[0].advantage.tolist() == alone.advantage.tolist()


def test_a_shared_token_has_the_mean_of_its_paths() -> None:
    tree = fork([0.0], [[1.0], [0.0]])
    (credited,) = Poad(discount=1.0, lam=1.0, whiten=False)([judged(tree, value=[0.5, 0.5, 0.9, 0.9, 0.1, 0.1])])
    assert at_actions(tree, credited.positive) == pytest.approx([0.25, 0.25, 0.1, 0.1, 0, 0])
    assert at_actions(tree, credited.value_targets["value"]) == pytest.approx([0.5, 0.5, 1, 1, 0, 0])


def test_whitened() -> None:
    (credited,) = Poad(discount=0.9, lam=0.8)([CARD])
    advantage = np.asarray(at_actions(credited.tree, credited.advantage))
    assert advantage.mean() == pytest.approx(0, abs=1e-6)
    assert advantage.std(ddof=1) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("field", [{"discount": 0.0}, {"lam": 1.1}])
def test_fields(field: dict[str, float]) -> None:
    (name,) = field
    with pytest.raises(ValueError, match=f"Poad.{name}: got"):
        Poad(**field)
