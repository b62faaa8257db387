import pytest
from tests.credit.grown import TOY, branching, ended, flat, named
from tests.credit.seen import paid

from bough.credit import Ipa, compares_with
from bough.tree import token_node


def test_worked_example() -> None:
    """Two chunks with an observation between them; only the chunks have credit."""
    two = paid(ended(1, 2))
    (credited,) = Ipa()([two])
    assert flat(credited) == pytest.approx([0.95, 1.0], abs=2e-5)
    acts = [token in (4, 5) for token in two.tree.token.tolist()]
    assert credited.advantage[acts].tolist() == pytest.approx([0.95, 0.95, 1.0, 1.0], abs=2e-5)
    assert not credited.advantage[[not act for act in acts]].any()
    assert len(token_node(two.tree)) == len(acts)


def test_what_counts_is_chunks_to_come_and_the_sign_of_what_is_paid() -> None:
    given = paid(ended(1, 4), ended(-2, 1), ended(0, 3))
    assert flat(*Ipa(discount=0.5)([given])) == pytest.approx([0.125, 0.25, 0.5, 1, -2, 0, 0, 0])
    assert flat(*Ipa(discount=1.0)([given])) == [1, 1, 1, 1, -2, 0, 0, 0]
    assert flat(*Ipa(discount=0.0)([given])) == [0, 0, 0, 1, -2, 0, 0, 0]


def test_what_was_paid_early_counts_for_all_chunks() -> None:
    assert flat(*Ipa(discount=0.5)([paid([1.0, 0.0])])) == [0.5, 1.0]


def test_a_baseline_tells_good_from_bad_where_failure_pays_nothing() -> None:
    given = paid(ended(1, 2), ended(0, 2))
    assert flat(*Ipa(discount=0.5, baseline="group")([given])) == [0.25, 0.5, -0.25, -0.5]
    assert flat(*Ipa(baseline="group")([paid([1.0])])) == [0.0]
    assert compares_with(Ipa()) == "nothing"
    assert compares_with(Ipa(baseline="group")) == "task"


def test_turns_that_paths_share() -> None:
    (credited,) = Ipa(discount=0.5)([branching(TOY)])
    assert named(credited) == {"a": 0.25, "a1": 1, "a2": 0, "b": 0, "b1": 0, "b2": 0}


def test_ranges() -> None:
    with pytest.raises(ValueError, match=r"Ipa.discount: got -0.1; need a number from 0 to 1"):
        Ipa(discount=-0.1)


def test_dense_rewards_are_discounted_from_the_chunk_that_earned_them() -> None:
    """1.45 = .5 + .95 * 1; with the last chunk alone paid, the outcome's numbers."""
    dense = Ipa(rewards="dense")
    assert flat(*dense([paid([0.5, 1.0])])) == pytest.approx([1.45, 1.0], abs=2e-5)
    assert flat(*dense([paid(ended(1, 3))])) == pytest.approx([0.9025, 0.95, 1.0], abs=2e-5)
    # G is 1.5 1 and 1 2; the third chunk of the first path has no peer, and two alike paths have no better one.
    grouped = Ipa(rewards="dense", baseline="group", discount=0.5)
    assert flat(*grouped([paid([1.0, 0.5, 1.0], [0.0, 2.0])])) == pytest.approx([0.25, -0.5, 0.0, -0.25, 0.5])
    assert not any(flat(*grouped([paid([0.3, 0.1], [0.3, 0.1])])))
