"""The budget of DAST: its worked example, over the trees of a task, and what does not change it."""

import numpy as np
import pytest
from tests.trees import ACTION, OBSERVATION, PROMPT, N, build

from bough.reward import EnvReward, LengthBudget, compute_rewards
from bough.tree import Outcome, Tree

BONUS = [0.818182, 0.454545, -0.1, 0.636364]
DONE = Outcome.TERMINATED


def paths(*given: tuple[int, bool]) -> Tree:
    """Paths of one turn with so many tokens, solved or not."""
    nodes = [N(parent=-1, kind=PROMPT, tokens=(1, 2, 3))]
    for tokens, success in given:
        nodes.append(N(parent=0, kind=ACTION, tokens=(5,) * tokens, env_reward=float(success)))
        nodes.append(N(parent=len(nodes) - 1, kind=OBSERVATION, tokens=(6,), outcome=DONE, success=success))
    return build(*nodes)


def test_worked_example_over_two_trees_of_a_task() -> None:
    group = [paths((20, True), (60, True)), paths((100, False), (40, True))]
    found = compute_rewards(group, [LengthBudget()])
    leaves = [each.channels["length_budget"][2::2] for each in found]
    assert np.concatenate(leaves) == pytest.approx(BONUS, abs=2e-5)
    assert np.concatenate([each.returns() for each in found]) == pytest.approx(BONUS, abs=2e-5)


def test_other_weights_of_other_rewards_change_nothing() -> None:
    """The released code compares the sum of all rewards with the number 3."""
    group = [paths((20, True), (60, True), (100, False), (40, True))]
    (found,) = compute_rewards(group, [EnvReward(weight=0.37), LengthBudget(weight=2.0)])
    assert found.channels["length_budget"][2::2] == pytest.approx(2 * np.asarray(BONUS), abs=2e-5)


def test_without_a_success_the_longest_failure_is_the_budget() -> None:
    """A failure costs less the longer it is, and a long one no less than `least`."""
    score = LengthBudget().score(np.asarray([10.0, 50.0, 100.0]), np.zeros(3, dtype=np.bool_))
    assert score == pytest.approx([-0.91, -0.55, -0.1])
    assert LengthBudget().score(np.asarray([70.0]), np.ones(1, dtype=np.bool_)) == pytest.approx([0.5])
    assert not LengthBudget().score(np.zeros(2), np.asarray([True, False])).any()


def test_long_successes_earn_the_least_and_hard_tasks_have_a_larger_budget() -> None:
    hard = LengthBudget().score(np.asarray([60.0, 100, 100, 100]), np.asarray([True, False, False, False]))
    easy = LengthBudget().score(np.asarray([60.0, 20, 20, 20]), np.asarray([True] * 4))
    assert hard[0] > 0.5 > easy[0]
    assert easy[0] == 0.1


def test_paths_that_do_not_count_do_not_change_the_budget() -> None:
    tree = paths((20, True), (60, True), (100, False), (40, True))
    nodes = [N(parent=-1, kind=PROMPT)]
    nodes += [N(parent=0, kind=ACTION, tokens=(5,) * 900), N(parent=1, kind=OBSERVATION, outcome=Outcome.FAILED)]
    found = compute_rewards([tree, build(*nodes)], [LengthBudget()])
    assert found[0].channels["length_budget"][2::2] == pytest.approx(BONUS, abs=2e-5)
    assert not found[1].channels["length_budget"].any()


@pytest.mark.parametrize(("field", "value"), [("weight", -1), ("factor", 1), ("min_reward", 0)])
def test_the_settings_are_checked(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"LengthBudget.{field}: got {value}; need"):
        LengthBudget(**{field: value})
