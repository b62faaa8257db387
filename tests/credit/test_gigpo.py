from dataclasses import replace

import numpy as np
import pytest
from tests.credit.grown import ended, flat, path_index
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, rewarded

from bough.credit import Gigpo
from bough.credit.returns import sum_ahead
from bough.needs import STATE_KEYS, needs_of
from bough.tree import Outcome, Rewarded, path_view

A, B = ("s0", "s1", "s2"), ("s0", "s1", "s3")
PAIR = path_index(A, B, paid=[ended(1, 3), ended(0, 3)])
UNEQUAL = path_index(A, ("s0",), paid=[ended(1, 3), ended(0, 1)])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Gigpo(discount=0.9, norm="mean"), [0.905, 0.95, 0.5, -0.905, -0.95, -0.5]),
        (Gigpo(discount=0.9), [1.414211, 1.414211, 0.707106, -1.414211, -1.414211, -0.707106]),
        (Gigpo(discount=0.9, as_released=True), [1.619975, 1.619975, 0.912869, -1.619975, -1.619975, -0.912869]),
        (Gigpo(discount=0.9, norm="mean", weight=2.0), [1.31, 1.4, 0.5, -1.31, -1.4, -0.5]),
        (Gigpo(discount=0.9, norm="mean", weight=0.0), [0.5] * 3 + [-0.5] * 3),
    ],
)
def test_worked_example(rule: Gigpo, expected: list[float]) -> None:
    assert flat(*rule([PAIR])) == pytest.approx(expected, abs=2e-5)


def test_returns_are_discounted_by_turn() -> None:
    view = path_view([PAIR])
    ahead = sum_ahead(view.reward, np.full(6, 0.9), view.start)
    assert ahead.tolist() == pytest.approx([0.81, 0.9, 1, 0, 0, 0])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Gigpo(norm="mean"), [0.5, 0.5, 0.5, -0.5]),
        (Gigpo(norm="mean", as_released=True), [0.25, 0.25, 0.25, -0.75]),
        (Gigpo(as_released=True), [0.499999, 0.499999, 0.499999, -1.499997]),
    ],
)
def test_a_path_counts_once_however_many_turns_it_has(rule: Gigpo, expected: list[float]) -> None:
    """Defect 2 of released code: statistics over rows, of which a long path has more."""
    assert flat(*replace(rule, weight=0.0)([UNEQUAL])) == pytest.approx(expected, abs=2e-5)


def test_a_path_alone_in_its_task_gets_zero_but_its_return_in_released_code() -> None:
    alone = path_index(("s0",), paid=[[0.7]])
    assert flat(*Gigpo()([alone])) == [0.0]
    assert flat(*Gigpo(norm="mean", as_released=True)([alone])) == pytest.approx([0.7])


def test_a_later_visit_of_a_state_is_worth_more() -> None:
    circle = path_index(("s", "t", "s"), ("t",), paid=[ended(1, 3), [0.0]])
    first, between, second, other = flat(*Gigpo(discount=0.5, norm="mean")([circle]))
    assert [first, second] == pytest.approx([0.5 - 0.375, 0.5 + 0.375])
    assert [between, other] == pytest.approx([0.5 + 0.25, -0.5 - 0.25])


def test_unknown_states_are_like_no_other() -> None:
    unknown = path_index((None, None), (None, None), paid=[ended(1, 2), ended(0, 2)])
    # The two prompts are one node without a key, and still no group.
    assert flat(*Gigpo(norm="mean")([unknown])) == pytest.approx([0.5, 0.5, -0.5, -0.5])


def test_states_are_compared_within_a_task() -> None:
    one, other = path_index(("s",), paid=[[1.0]], task="one"), path_index(("s",), paid=[[0.0]], task="other")
    assert flat(*Gigpo()([one, other])) == [0.0, 0.0]
    same = path_index(("s",), paid=[[0.0]], task="one")
    assert flat(*Gigpo(norm="mean")([one, same])) == pytest.approx([1.0, -1.0])


def test_turns_that_paths_share_are_in_the_group_once_for_each() -> None:
    end = Outcome.TERMINATED
    nodes = [
        N(parent=-1, kind=PROMPT, state_key=1),
        N(parent=0, kind=ACTION),
        N(parent=1, kind=OBSERVATION, state_key=2),
    ]
    nodes += [N(parent=2, kind=ACTION, env_reward=paid, outcome=end) for paid in (1.0, 0.0)]
    (credited,) = Gigpo(norm="mean", discount=1.0)([rewarded(build(*nodes))])
    assert flat(credited) == pytest.approx([1.0, 1.0, -1.0, -1.0])
    assert credited.positive[1] == pytest.approx(0.5)
    assert credited.negative[1] == pytest.approx(-0.5)


LONG = "the door is open and the lamp is lit. " * 12
TEXTS = ("a red box on the floor", "a red box on a floor!", "nothing but darkness")


def test_similar_texts_are_one_state() -> None:
    apart = path_index(
        ("go", TEXTS[0]), ("go", TEXTS[1]), ("go", TEXTS[2]), paid=[ended(1, 2), ended(0, 2), ended(0, 2)]
    )
    by_key = flat(*Gigpo(norm="mean")([apart]))[1::2]
    by_text = flat(*Gigpo(norm="mean", similarity=0.8)([apart]))[1::2]
    assert by_key == pytest.approx([2 / 3, -1 / 3, -1 / 3])
    assert by_text == pytest.approx([2 / 3 + 0.5, -1 / 3 - 0.5, -1 / 3])
    # Nothing less than the same text.
    assert flat(*Gigpo(norm="mean", similarity=1.0)([apart]))[1::2] == pytest.approx(by_key)


def test_a_text_joins_the_first_group_whose_first_text_it_is_like() -> None:
    # 10 letters: each next differs from the one before in 2 more, so the third is like the second only.
    chain = ("abcdefghij", "abcdefghXX", "abcdefYYXX")
    given = path_index(*(("go", text) for text in chain), paid=[ended(1, 2), ended(0, 2), ended(0, 2)])
    by_state = [a - b for a, b in zip(*(flat(*r([given]))[1::2] for r in (_similar(1.0), _similar(0.0))), strict=True)]
    assert by_state == pytest.approx([0.5, -0.5, 0.0])


def _similar(weight: float) -> Gigpo:
    return Gigpo(norm="mean", similarity=0.8, weight=weight)


def test_long_texts_are_compared_letter_by_letter() -> None:
    # In texts of 200 letters and more, the matcher of released code overlooks letters that are not rare.
    one, other = "1" + LONG, LONG.replace("lamp", "1amp", 1)
    given = path_index(("go", one), ("go", other), paid=[ended(1, 2), ended(0, 2)])
    ours, theirs = Gigpo(norm="mean", similarity=0.95), Gigpo(norm="mean", similarity=0.95, as_released=True)
    assert flat(*ours([given]))[1::2] == pytest.approx([1.0, -1.0])
    assert flat(*theirs([given]))[1::2] == pytest.approx([0.5, -0.5])


def test_texts_are_compared_within_a_task_and_no_text_is_like_no_other() -> None:
    one, other = (path_index(("go", "here"), paid=[ended(p, 2)], task=t) for p, t in ((1.0, "one"), (0.0, "other")))
    assert flat(*Gigpo(similarity=0.9)([one, other])) == [0.0] * 4
    mute = path_index(("go", None), ("go", None), paid=[ended(1, 2), ended(0, 2)])
    assert flat(*Gigpo(norm="mean", similarity=0.9)([mute]))[1::2] == pytest.approx([0.5, -0.5])


def test_what_it_needs() -> None:
    assert needs_of(Gigpo()) == {STATE_KEYS}
    assert needs_of(Gigpo(similarity=0.95)) == frozenset()


def test_nothing_is_nothing() -> None:
    nobody: list[Rewarded] = []
    assert Gigpo()(nobody) == []
    assert Gigpo(similarity=0.9)(nobody) == []


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ({"discount": 1.1}, "Gigpo.discount: got 1.1; need a number from 0 to 1"),
        ({"similarity": 0.0}, "Gigpo.similarity: got 0.0; need a number above 0 and up to 1, or None"),
        ({"epsilon": 0.0}, "Gigpo.epsilon: got 0.0; need a number above 0"),
    ],
)
def test_ranges(field: dict[str, float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Gigpo(**field)  # type: ignore[arg-type]
