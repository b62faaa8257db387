import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import chains, rewarded

from bough.credit import Grpo, dr_grpo, rloo
from bough.tree import Credited, Outcome, counted, token_node


def of_paths(credited: Credited) -> list[float]:
    """The advantage of each path of chains, read off its first action."""
    tree = credited.tree
    first = [leaf - 1 for leaf in counted(tree)]
    return [float(credited.advantage[token_node(tree) == node][0]) for node in first]


@pytest.mark.parametrize(
    ("rule", "four", "one"),
    [
        (Grpo(), [0.866024, -0.866024, -0.866024, 0.866024], 0.0),
        (dr_grpo(), [0.5, -0.5, -0.5, 0.5], 0.0),
        (rloo(), [0.666667, -0.666667, -0.666667, 0.666667], 0.0),
        (Grpo(as_released=True), [0.866024, -0.866024, -0.866024, 0.866024], 0.5),
        (Grpo(std="none", as_released=True), [0.5, -0.5, -0.5, 0.5], 0.5),
        (Grpo(mean="leave_one_out", std="none", as_released=True), [0.666667, -0.666667, -0.666667, 0.666667], 0.5),
    ],
)
def test_worked_example(rule: Grpo, four: list[float], one: float) -> None:
    trees = [rewarded(chains([1.0, 0.0, 0.0, 1.0], task="p")), rewarded(chains([0.5], task="q"))]
    p, q = rule(trees)
    assert of_paths(p) == pytest.approx(four, abs=2e-5)
    assert of_paths(q) == pytest.approx([one], abs=2e-5)
    if not rule.as_released:
        assert of_paths(q) == [0.0]


def test_trees_of_one_task_are_one_group_in_any_order() -> None:
    whole = of_paths(Grpo()([rewarded(chains([1.0, 0.0, 0.5]))])[0])
    parts = [rewarded(chains([1.0])), rewarded(chains([7.0], task="other")), rewarded(chains([0.0, 0.5]))]
    first, other, second = Grpo()(parts)
    assert of_paths(first) + of_paths(second) == whole
    assert of_paths(other) == [0.0]
    assert [credited.rewarded for credited in (first, other, second)] == parts


def test_sums_in_another_order_are_a_tie() -> None:
    returns = np.asarray([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1])
    assert returns[0] != returns[1]
    assert Grpo().advantages(returns).tolist() == [0.0, 0.0]


def test_a_tree_without_counted_paths_has_no_credit() -> None:
    trees = [rewarded(chains([1.0, 0.0])), rewarded(chains([5.0], outcomes=[Outcome.FAILED]))]
    good, failed = Grpo()(trees)
    assert of_paths(good) == pytest.approx([0.707106, -0.707106], abs=2e-5)
    assert not failed.advantage.any()


def test_epsilon_is_positive() -> None:
    with pytest.raises(ValueError, match=r"Grpo.epsilon: got 0.0; need a number above 0"):
        Grpo(epsilon=0.0)


returns_of_a_group = st.lists(st.floats(-100, 100), min_size=2, max_size=8)


@given(returns_of_a_group)
def test_advantages_are_centred_ordered_and_scaled(returns: list[float]) -> None:
    given_ = np.asarray(returns)
    for rule in (Grpo(), dr_grpo(), rloo()):
        advantage = rule.advantages(given_)
        assert advantage.sum() == pytest.approx(0.0, abs=1e-9)
        assert np.all(np.diff(advantage[np.argsort(given_)]) >= 0)
    if given_.std() > 1e-3:
        assert Grpo().advantages(given_).std(ddof=1) == pytest.approx(1.0, abs=2e-3)


@given(returns_of_a_group)
def test_leave_one_out_is_against_the_mean_of_the_others(returns: list[float]) -> None:
    given_ = np.asarray(returns)
    others = [np.delete(given_, i).mean() for i in range(len(given_))]
    assert rloo().advantages(given_) == pytest.approx(given_ - others, abs=1e-9)
