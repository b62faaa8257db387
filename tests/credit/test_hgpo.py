import pytest
from hypothesis import given
from tests.credit.grown import ended, flat, path_index
from tests.trees import dressed, random_tree, seeds

from bough.credit import Gigpo, Hgpo
from bough.credit.gigpo import episode_part
from bough.tree import path_view

PATHS = (("s0", "s1", "s2"), ("s0", "s1", "s3"), ("s9", "s1", "s4"))
THREE = path_index(*PATHS, paid=[ended(1, 3), ended(0, 3), ended(0.2, 3)])


@pytest.mark.parametrize("as_released", [False, True])
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"history": 0, "norm": "mean"}, [0.405, 0.54, 0, -0.405, -0.36, 0, 0, -0.18, 0]),
        ({"history": 2, "norm": "mean"}, [0.405, 0.486, 0, -0.405, -0.414, 0, 0, -0.18, 0]),
        ({"history": 2}, [0.999997, 1.155489, 0, -0.999997, -0.970326, 0, 0, -0.462909, 0]),
        (
            {"history": 2, "norm": "mean", "base": True},
            [0.47, 0.505, 0.599999, -0.403333, -0.411667, -0.4, -0.2, -0.186667, -0.2],
        ),
    ],
)
def test_worked_example(rule: dict[str, object], expected: list[float], as_released: bool) -> None:
    made = Hgpo(discount=0.9, as_released=as_released, **rule)  # type: ignore[arg-type]
    assert flat(*made([THREE])) == pytest.approx(expected, abs=2e-5)


def test_a_zero_that_was_earned_counts() -> None:
    """Defect 3 of released code: a turn exactly at the mean of its group is treated as if it had no group."""
    # In state s the three returns are 1, 0.5 and 0; the second and third came by the same state before.
    paths = (("p", "s"), ("q", "s"), ("q", "s"))
    given_paths = path_index(*paths, paid=[ended(1, 2), ended(0.5, 2), ended(0, 2)])
    ours, theirs = (
        flat(*Hgpo(discount=1.0, norm="mean", as_released=released)([given_paths])) for released in (False, True)
    )
    # k = 1: 0, weight 2; k = 2: 0.25, weight 3.
    assert ours[3] == pytest.approx(0.15, abs=2e-5)
    assert theirs[3] == pytest.approx(0.25, abs=2e-5)
    assert ours[1] == theirs[1] == pytest.approx(0.5, abs=2e-5)


def test_alpha_weighs_what_is_shared_for_longer() -> None:
    even = Hgpo(discount=0.9, history=2, norm="mean", alpha=0.0)
    assert flat(*even([THREE]))[1] == pytest.approx((0.54 + 0.45) / 2, abs=2e-5)
    steep = Hgpo(discount=0.9, history=2, norm="mean", alpha=40.0)
    assert flat(*steep([THREE]))[1] == pytest.approx(0.45, abs=2e-5)


def test_contexts_are_not_longer_than_the_episode() -> None:
    # At the first turn nothing was before; that is not a state which all share.
    pair = path_index(("s", "s"), ("s", "t"), paid=[ended(1, 2), ended(0, 2)])
    first, second, other, last = flat(*Hgpo(discount=1.0, history=1, norm="mean")([pair]))
    # s is met three times with returns 1, 1, 0. No turn has "s before s" in common with another.
    assert [first, second, other, last] == pytest.approx([1 / 3, 1 / 3, -2 / 3, 0], abs=2e-5)


def test_base_of_a_path_alone_in_its_task() -> None:
    alone = path_index(("s", "s"), paid=[ended(1, 2)])
    plain = flat(*Hgpo(discount=0.5, norm="mean")([alone]))
    assert plain == pytest.approx([-0.25, 0.25], abs=2e-5)
    assert flat(*Hgpo(discount=0.5, norm="mean", base=True)([alone])) == plain
    one_turn = path_index(("s",), paid=[[0.7]])
    ours, theirs = (Hgpo(norm="mean", base=True, as_released=released) for released in (False, True))
    assert flat(*ours([one_turn])) == [0.0]
    assert flat(*theirs([one_turn])) == pytest.approx([0.7], abs=2e-5)


def test_base_is_over_paths() -> None:
    unequal = path_index(("a", "b", "c"), ("d",), paid=[ended(1, 3), [0.0]])
    ours, theirs = (flat(*Hgpo(norm="mean", base=True, as_released=released)([unequal])) for released in (False, True))
    assert ours == pytest.approx([0.5, 0.5, 0.5, -0.5], abs=2e-5)
    assert theirs == pytest.approx([0.25, 0.25, 0.25, -0.75], abs=2e-5)


def test_unknown_states_are_like_no_other_also_as_history() -> None:
    pair = path_index(("p", None, "s"), ("p", None, "s"), paid=[ended(1, 3), ended(0, 3)])
    advantage = flat(*Hgpo(discount=1.0, history=5, norm="mean")([pair]))
    assert advantage == pytest.approx([0.5, 0, 0.5, -0.5, 0, -0.5], abs=2e-5)
    longer = Hgpo(discount=1.0, history=5, norm="mean", alpha=9.0)
    assert flat(*longer([pair])) == pytest.approx(advantage, abs=2e-5)


@given(seeds())
def test_without_history_it_is_the_second_term_of_gigpo(rng: object) -> None:
    trees = [dressed(random_tree(rng, task=task), rng) for task in ("a", "b", "a")]  # type: ignore[arg-type]
    gigpo = Gigpo(norm="mean")
    view = path_view(trees)
    whole = episode_part(view, "none", 1e-6, False)
    mine, theirs = (flat(*rule(trees)) for rule in (Hgpo(history=0, norm="mean", epsilon=1e-9), gigpo))
    assert mine == pytest.approx([a - b for a, b in zip(theirs, whole.tolist(), strict=True)], abs=1e-5)


def test_ranges() -> None:
    for field, told in (
        ({"history": -1}, "Hgpo.history: got -1; need 0 or more"),
        ({"discount": 2.0}, "Hgpo.discount: got 2.0; need a number from 0 to 1"),
        ({"epsilon": 0.0}, "Hgpo.epsilon: got 0.0; need a number above 0"),
    ):
        with pytest.raises(ValueError, match=told):
            Hgpo(**field)  # type: ignore[arg-type]
