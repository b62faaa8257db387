"""Environments of PettingZoo as seats."""

import pytest
from tests.env.adapters.nim_aec import heap, numbered, shown, stuck_heap

from bough.env.adapters.pettingzoo import pettingzoo_env
from bough.tree import Outcome

TAKES = ("one", "two", "three")


def test_agents_act_in_turn_and_are_paid_each() -> None:
    env = pettingzoo_env(heap, arguments={"size": 4}, text=shown, actions=TAKES)
    assert env.seats == {"ann": "You are ann.", "bob": "You are bob."}
    task = next(task for task in env.tasks("train", 20, 0) if env.start(task).observation == "ann: 4 left")
    start = env.start(task)
    assert (start.seat, start.admissible) == ("ann", TAKES)
    middle = env.step(start, "three")
    assert (middle.state.seat, middle.state.observation) == ("bob", "bob: 1 left")
    assert middle.state.admissible == ("one",)
    end = env.step(middle.state, "one")
    assert end.outcome is Outcome.TERMINATED
    assert end.payoffs == {"ann": -1.0, "bob": 1.0}
    assert (end.success, end.successes) == (False, {"ann": False, "bob": True})
    other = env.step(env.step(start, "one").state, "three")
    assert other.payoffs == {"ann": -1.0, "bob": 1.0}
    assert env.step(env.step(env.step(start, "one").state, "one").state, "two").payoffs == {"ann": 1.0, "bob": -1.0}


@pytest.mark.parametrize("action", ["", "four", "two", "\x00", "\ud800", "x" * 10_000])
def test_an_action_that_is_not_possible_changes_nothing(action: str) -> None:
    env = pettingzoo_env(heap, arguments={"size": 4}, text=shown, actions=TAKES, max_steps=3)
    task = next(task for task in env.tasks("train", 20, 0) if env.start(task).observation == "ann: 4 left")
    state = env.step(env.start(task), "three").state
    step = env.step(state, action)
    assert (step.valid, step.state.observation, step.state.seat) == (False, state.observation, "bob")
    assert env.step(step.state, action).outcome is Outcome.TRUNCATED


def test_actions_are_called_by_their_numbers() -> None:
    env = pettingzoo_env(numbered, arguments={"size": 4}, text=shown)
    task = next(task for task in env.tasks("train", 20, 0) if env.start(task).observation == "ann: 4 left")
    state = env.start(task)
    assert state.admissible == ("1", "2", "3")
    for taken in (1, 2, 3):
        step = env.step(state, str(taken))
        assert (step.valid, step.state.observation) == (True, f"bob: {4 - taken} left")
    assert env.step(env.step(state, "3").state, "1").payoffs == {"ann": -1.0, "bob": 1.0}
    assert not env.step(state, "0").valid


def test_a_mask_without_a_valid_action_permits_none() -> None:
    env = pettingzoo_env(stuck_heap, max_steps=2)
    start = env.start(env.tasks("train", 1, 0)[0])
    step = env.step(start, "1")
    assert (start.admissible, step.valid, step.state.observation) == ((), False, start.observation)
    assert env.step(step.state, "1").outcome is Outcome.TRUNCATED
