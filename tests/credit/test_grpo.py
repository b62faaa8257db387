import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build, chains, rewarded

from bough.credit import Grpo, dr_grpo, lite_ppo, loop, opo, rec, rloo
from bough.tree import Credited, Outcome, Source, counted, token_node


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


def test_the_optimal_baseline_is_a_mean_over_tokens() -> None:
    trees = [
        rewarded(chains([1.0, 0.0, 0.0, 1.0], turns=(3, 2, 3, 1), action_tokens=1, task="p")),
        rewarded(chains([0.5], turns=2, action_tokens=1, task="q")),
    ]
    p, q = opo()(trees)
    assert of_paths(p) == pytest.approx([0.555556, -0.444444, -0.444444, 0.555556], abs=2e-5)
    assert of_paths(q) == [0.0]
    assert opo().advantages(np.asarray([1.0, 0.0])).tolist() == [0.5, -0.5]


def test_only_what_the_policy_wrote_is_a_paths_length() -> None:
    """Two turns of two tokens, the first of them a teacher's, weigh as much as one turn."""
    half = (
        N(parent=0, kind=ACTION, tokens=(4, 5), source=Source.TEACHER),
        N(parent=1, kind=OBSERVATION),
        N(parent=2, kind=ACTION, tokens=(4, 5), env_reward=1.0, outcome=Outcome.TERMINATED),
    )
    whole = N(parent=0, kind=ACTION, tokens=(4, 5), outcome=Outcome.TERMINATED)
    (credited,) = opo()([rewarded(build(N(parent=-1, kind=PROMPT), *half, whole))])
    assert credited.turn_advantage is not None
    assert credited.turn_advantage.tolist() == [0.5, 0.5, -0.5]


def test_paths_of_which_nothing_is_the_policys_have_no_say_in_the_optimal_baseline() -> None:
    forced = N(parent=0, kind=ACTION, source=Source.FORCED, env_reward=9.0, outcome=Outcome.TERMINATED)
    others = [N(parent=0, kind=ACTION, env_reward=paid, outcome=Outcome.TERMINATED) for paid in (1.0, 0.0)]
    (credited,) = opo()([rewarded(build(N(parent=-1, kind=PROMPT), forced, *others))])
    assert credited.advantage.tolist() == [0.0, 0.0, 0.5, -0.5]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (loop(), [[0.75, -0.75, 0.0], [0.0, 0.0]]),
        (Grpo(mean="leave_one_out", ddof=0, epsilon=1e-7), [[1.837117, -1.837117, 0.0], [0.0, 0.0]]),
        (Grpo(std="none"), [[0.5, -0.5, 0.0], [0.0, 0.0]]),
        (Grpo(ddof=0, epsilon=1e-7), [[1.224745, -1.224745, 0.0], [0.0, 0.0]]),
    ],
)
def test_loop_and_its_released_variants(rule: Grpo, expected: list[list[float]]) -> None:
    one, other = rule([rewarded(chains([1.0, 0.0, 0.5], task="a")), rewarded(chains([1.0, 1.0], task="b"))])
    assert of_paths(one) == pytest.approx(expected[0], abs=2e-5)
    assert of_paths(other) == expected[1]


def test_lite_ppo_divides_by_the_deviation_of_the_batch() -> None:
    a, b = lite_ppo()(
        [
            rewarded(chains([1.0, 0.0], task="a")),
            rewarded(chains([3.0, 1.0], task="b")),
        ]
    )
    assert of_paths(a) + of_paths(b) == pytest.approx([0.397359, -0.397359, 0.794719, -0.794719], abs=2e-5)


def test_lite_ppo_has_nothing_for_those_who_are_alone_or_tied() -> None:
    trees = [rewarded(chains(r, task=str(i))) for i, r in enumerate(([1.0, 0.0], [3.0], [2.0, 2.0]))]
    mixed, alone, tied = lite_ppo()(trees)
    assert of_paths(mixed) == pytest.approx([0.5 / 1.140175, -0.5 / 1.140175], abs=2e-5)
    assert of_paths(alone) == [0.0]
    assert of_paths(tied) == [0.0, 0.0]


def test_a_group_of_one_is_divided_by_the_deviation_of_the_batch_in_the_release() -> None:
    """Trinity-RFT: mean 0, and the standard deviation of 1, 0 and 3, or 1 for a batch of one."""
    trees = [rewarded(chains(r, task=str(i))) for i, r in enumerate(([1.0, 0.0], [3.0]))]
    mixed, alone = lite_ppo(as_released=True)(trees)
    deviation = np.std([1.0, 0.0, 3.0], ddof=1) + 1e-6
    assert of_paths(mixed) == pytest.approx([0.5 / deviation, -0.5 / deviation])
    assert of_paths(alone) == pytest.approx([3.0 / deviation])
    assert of_paths(lite_ppo(as_released=True)(trees[1:])[0]) == pytest.approx([3.0], abs=1e-5)


def test_loops_epsilon_is_a_floor() -> None:
    """apple/ml-loop: max(std, 1e-7). Returns 5e-8 apart, whose deviation is below it."""
    scaled = loop(scale=True)
    assert scaled.advantages(np.asarray([1.0, 0.0, 0.5])) == pytest.approx([1.837117, -1.837117, 0.0], abs=2e-6)
    assert scaled.advantages(np.asarray([1.0, 0.0])).tolist() == [2.0, -2.0], "nothing is added"
    assert scaled.advantages(np.asarray([5e-8, 0.0])) == pytest.approx([0.5, -0.5])
    assert scaled.advantages(np.asarray([5e-8, 0.0])) != pytest.approx(
        Grpo(mean="leave_one_out", ddof=0, epsilon=1e-7).advantages(np.asarray([5e-8, 0.0]))
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [(rec(), [0.5, 0.0, -0.5]), (Grpo(ddof=0), [1.224742, 0.0, -1.224742]), (Grpo(), [0.999998, 0.0, -0.999998])],
)
def test_rec_and_the_deviations_it_may_be_divided_by(rule: Grpo, expected: list[float]) -> None:
    assert rule.advantages(np.asarray([1.0, 0.5, 0.0])) == pytest.approx(expected, abs=2e-5)
    assert rule.advantages(np.asarray([1.0])).tolist() == [0.0]


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


def test_ddof_is_zero_or_one() -> None:
    with pytest.raises(ValueError, match=r"Grpo.ddof: got 2; need 0 or 1"):
        Grpo(ddof=2)


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
