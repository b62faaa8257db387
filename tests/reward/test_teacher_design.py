"""Designed rewards of a room: the best actions stay the same, few states are paid, and a learner is faster."""

import numpy as np
import pytest

from bough.reward.teacher_design import TabularMdp, TeacherDesign
from bough.tree import Floats

SIDE = 4
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))


def room() -> TabularMdp:
    """A square of cells; the goal is the last one, and pays 1 for the move into it."""
    states = SIDE * SIDE - 1
    reach, reward = np.zeros((states, 4, states)), np.zeros((states, 4))
    for cell in range(states):
        for action, (down, right) in enumerate(MOVES):
            row, column = min(max(cell // SIDE + down, 0), SIDE - 1), min(max(cell % SIDE + right, 0), SIDE - 1)
            after = row * SIDE + column
            if after == states:
                reward[cell, action] = 1.0
            else:
                reach[cell, action, after] = 1.0
    start = np.zeros(states)
    start[0] = 1.0
    return TabularMdp(transition=reach, reward=reward, start=start, discount=0.9)


UNIFORM = np.full((SIDE * SIDE - 1, 4), 0.25)


def test_the_optimal_actions_of_every_state_stay_exactly_the_same() -> None:
    process = room()
    for horizon in (1, 3):
        designed = TeacherDesign(horizon=horizon, max_states=4)(process, UNIFORM)
        assert np.array_equal(process.optimal_actions(designed), process.optimal_actions())
        assert int((np.abs(designed) > 1e-9).any(axis=1).sum()) <= 4
        assert np.abs(designed).max() <= 1 + 1e-9
        assert not np.allclose(designed, process.reward), "and it says more than the true reward"


def test_the_margin_keeps_other_actions_worse() -> None:
    process = room()
    true = process.optimal_q_values()
    designed = process.optimal_q_values(TeacherDesign(margin=1.0, max_states=4)(process, UNIFORM))
    lost = true.max(axis=1, keepdims=True) - true
    assert (designed.max(axis=1, keepdims=True) - designed >= lost - 1e-6).all()


def return_after_a_step(process: TabularMdp, reward: Floats) -> float:
    """The true return of the uniform policy after one step along the advantages of a reward."""
    advantage = reward - (UNIFORM * reward).sum(axis=1, keepdims=True)
    policy = UNIFORM * np.exp(advantage)
    policy /= policy.sum(axis=1, keepdims=True)
    walk: Floats = (policy[:, :, None] * process.transition).sum(axis=1)
    paid: Floats = (policy * process.reward).sum(axis=1)
    value: Floats = np.linalg.solve(np.eye(len(paid)) - process.discount * walk, paid)
    return float((process.start * value).sum())


def test_a_learner_improves_more_in_a_step_and_with_more_states() -> None:
    process = room()
    found = [process.reward, *(TeacherDesign(max_states=most)(process, UNIFORM) for most in (2, 4, 6))]
    returns = [return_after_a_step(process, reward) for reward in found]
    assert returns[0] <= returns[1] + 1e-9 < returns[2] < returns[3]


def informativeness(process: TabularMdp, policy: Floats, designed: Floats, horizon: int) -> float:
    """The sum that the design makes large, by the values of a reward over some steps of a policy."""
    walk: Floats = (policy[:, :, None] * process.transition).sum(axis=1)
    visits: Floats = np.linalg.solve(np.eye(len(walk)) - process.discount * walk.T, process.start)
    true = process.optimal_q_values()
    true = true - (policy * true).sum(axis=1, keepdims=True)
    value, ahead = np.zeros(len(walk)), designed
    for _ in range(horizon):
        ahead = designed + process.discount * process.transition @ value
        value = (policy * ahead).sum(axis=1)
    return float((visits[:, None] * policy * true * (ahead - value[:, None])).sum())


def test_a_design_is_the_most_informative_for_its_own_policy_and_horizon() -> None:
    process = room()
    learners = [UNIFORM, np.tile([0.1, 0.6, 0.2, 0.1], (len(UNIFORM), 1))]
    cases = [(policy, horizon) for policy in learners for horizon in (1, 3)]
    designed = [TeacherDesign(horizon=horizon, max_states=3)(process, policy) for policy, horizon in cases]
    for place, (policy, horizon) in enumerate(cases):
        found = [informativeness(process, policy, each, horizon) for each in designed]
        assert all(found[place] > other + 1e-3 for at, other in enumerate(found) if at != place)
        fewer = TeacherDesign(horizon=horizon, max_states=2)(process, policy)
        assert found[place] > informativeness(process, policy, fewer, horizon) + 1e-3, "and another state helps"


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match=r"TeacherDesign.max_states: got 1, and 2 states with a true reward"):
        TeacherDesign(max_states=1)(room(), UNIFORM)
    with pytest.raises(ValueError, match=r"TeacherDesign.margin: got 0; need a number above 0"):
        TeacherDesign(margin=0)
    with pytest.raises(ValueError, match=r"TabularMdp.discount: got 1; need a number from 0, below 1"):
        TabularMdp(transition=np.zeros((1, 1, 1)), reward=np.zeros((1, 1)), start=np.ones(1), discount=1)
