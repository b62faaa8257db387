import numpy as np
import pytest
from hypothesis import given
from tests.credit.critics import at_actions, episode, fork, judged
from tests.trees import dressed, random_tree, seeds

from bough.credit import Gae
from bough.needs import REFERENCE, needs_of, value_head
from bough.tree import Kind, Rewarded, Source, path_view, token_node

PLAIN = Gae(discount=0.9, lam=0.8, whiten=False)


def test_the_cards_first_case() -> None:
    """Reward at the third token; what is behind the mask has a value of 9.9 that nobody may look at."""
    given_tree = judged(episode([3], [1.0]), value=[0.5, 0.6, 0.7])
    (credited,) = Gae(discount=1.0, lam=0.95)([given_tree])
    assert at_actions(credited.tree, credited.advantage) == pytest.approx([0.991344, 0.017092, -1.008436], abs=2e-5)
    assert at_actions(credited.tree, credited.value_targets["value"]) == pytest.approx([0.96575, 0.985, 1.0], abs=2e-5)


def test_the_cards_second_case() -> None:
    given_tree = judged(episode([2, 2], [0.0, 1.0]), value=[0.2, 0.4, 0.6, 0.8])
    (credited,) = PLAIN([given_tree])
    assert at_actions(credited.tree, credited.advantage) == pytest.approx([0.397658, 0.33008, 0.264, 0.2], abs=2e-5)
    value_targets = at_actions(credited.tree, credited.value_targets["value"])
    assert value_targets == pytest.approx([0.597658, 0.73008, 0.864, 1.0], abs=2e-5)


def test_whitening_as_released() -> None:
    """verl's `masked_whiten` divides by sqrt(variance + 1e-8): advantages of 1e-4 show it."""
    given_tree = judged(episode([2, 2], [0.0, 1e-4]), value=[1e-4, 0.0, 0.0, 2e-4])
    raw = np.asarray([0.0, 1e-4, 1e-4, -1e-4])
    for released, divisor in ((False, raw.std(ddof=1) + 1e-8), (True, np.sqrt(raw.var(ddof=1) + 1e-8))):
        (credited,) = Gae(as_released=released)([given_tree])
        expected = (raw - raw.mean()) / divisor
        assert at_actions(credited.tree, credited.advantage) == pytest.approx(expected.tolist(), rel=1e-5)


@pytest.mark.parametrize("gap", [0, 1, 7])
def test_observations_have_no_credit_and_are_in_no_mean(gap: int) -> None:
    """In verl's `compute_gae_advantage_return` whitened advantages of masked tokens are not 0."""
    given_tree = judged(episode([2, 2], [0.0, 1.0], gap=gap), value=[0.2, 0.4, 0.6, 0.8])
    (credited,) = Gae()([given_tree])
    acts = (credited.tree.kind == Kind.ACTION)[token_node(credited.tree)]
    assert not credited.advantage[~acts].any()
    assert np.isnan(credited.value_targets["value"][~acts]).all()
    assert credited.advantage[acts].mean() == pytest.approx(0, abs=1e-6)
    assert credited.advantage[acts].std(ddof=1) == pytest.approx(1, abs=1e-6)
    assert at_actions(credited.tree, credited.advantage) == pytest.approx(
        (np.asarray([0.8, 0.6, 0.4, 0.2]) - 0.5) / np.std([0.8, 0.6, 0.4, 0.2], ddof=1), abs=1e-6
    )


def test_a_teachers_turn_is_as_if_it_had_not_been() -> None:
    sampled, teacher = Source.SAMPLED, Source.TEACHER
    three = judged(
        episode([2, 3, 2], [0.25, 0.5, 1.0], sources=[sampled, teacher, sampled]),
        value=[0.2, 0.4, 7, 7, 7, 0.6, 0.8],
    )
    two = judged(episode([2, 2], [0.75, 1.0]), value=[0.2, 0.4, 0.6, 0.8])
    (long,), (short,) = PLAIN([three]), PLAIN([two])
    kept = [0, 1, 5, 6]
    assert np.asarray(at_actions(long.tree, long.advantage))[kept].tolist() == at_actions(short.tree, short.advantage)
    assert np.asarray(at_actions(long.tree, long.value_targets["value"]))[[2, 3, 4]].tolist() == pytest.approx(
        [np.nan] * 3, nan_ok=True
    )
    assert not np.asarray(at_actions(long.tree, long.advantage))[[2, 3, 4]].any()


def test_what_is_paid_before_the_policy_acts_is_nobodys() -> None:
    first = judged(
        episode([2, 2], [5.0, 1.0], sources=[Source.TEACHER, Source.SAMPLED]), value=[np.nan, np.nan, 0.6, 0.8]
    )
    (credited,) = PLAIN([first])
    assert at_actions(credited.tree, credited.advantage) == pytest.approx([0, 0, 0.264, 0.2], abs=1e-6)


def test_a_path_without_a_turn_of_the_policy() -> None:
    alone = judged(episode([2], [1.0], sources=[Source.TEACHER]), value=[np.nan, np.nan])
    (credited,) = Gae()([alone])
    assert not credited.advantage.any()
    assert np.isnan(credited.value_targets["value"]).all()


def test_a_shared_token_has_the_mean_of_its_paths() -> None:
    tree = fork([0.0], [[1.0], [0.0]])
    (credited,) = Gae(whiten=False)([judged(tree, value=[0.5, 0.5, 0.9, 0.9, 0.1, 0.1])])
    assert at_actions(tree, credited.positive) == pytest.approx([0.25, 0.25, 0.1, 0.1, 0, 0])
    assert at_actions(tree, credited.negative) == pytest.approx([-0.25, -0.25, 0, 0, -0.1, -0.1])
    assert at_actions(tree, credited.value_targets["value"]) == pytest.approx([0.5, 0.5, 1, 1, 0, 0])


def test_the_divergence_is_paid_at_its_token() -> None:
    one = judged(episode([2], [1.0]), value=[0.0, 0.0], reference=[-0.7, -0.1])
    (credited,) = Gae(kl=0.5, whiten=False)([one])
    # The tree's own log-probabilities are -0.5: divergences 0.2 and -0.4.
    assert at_actions(one.tree, credited.advantage) == pytest.approx([1 - 0.1 + 0.2, 1 + 0.2], abs=1e-6)
    assert needs_of(Gae(kl=0.5)) == {value_head("value"), REFERENCE}
    assert needs_of(Gae()) == {value_head("value")}


@given(seeds())
def test_with_a_value_of_nothing_it_is_the_return_to_go(rng: np.random.Generator) -> None:
    given_tree = dressed(random_tree(rng, unusual=0.0), rng, {value_head("value")})
    zero = {"value": np.zeros_like(given_tree.estimates["value"])}
    (credited,) = Gae(whiten=False)([Rewarded(tree=given_tree.tree, channels=given_tree.channels, estimates=zero)])
    view = path_view([given_tree])
    mass = view.lengths[view.node] > 0
    ahead = np.asarray(
        [
            view.reward[(view.path == path) & (view.turn >= turn)].sum()
            for path, turn in zip(view.path, view.turn, strict=True)
        ]
    )
    for node in np.unique(view.node[mass]).tolist():
        mine = ahead[view.node == node]
        here = token_node(given_tree.tree) == node
        assert credited.positive[here] == pytest.approx(np.maximum(mine, 0).mean(), abs=1e-5)
        assert credited.negative[here] == pytest.approx(np.minimum(mine, 0).mean(), abs=1e-5)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"discount": 0.0}, "Gae.discount: got 0.0; need a number above 0 and up to 1"),
        ({"lam": 1.5}, "Gae.lam: got 1.5; need a number from 0 to 1"),
        ({"kl": -1.0}, "Gae.kl: got -1.0; need at least 0"),
    ],
)
def test_fields(field: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Gae(**field)
