"""Planner and executor on FrozenLake: whose turn it is, what each reads, and the oracle's subgoals."""

import pytest

from bough.env import PlannerExecutor
from bough.tree import Outcome
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.sokoban import Sokoban

LAKE = PlannerExecutor(env=FrozenLake(size=4), turns=2)


def test_the_planner_sets_a_subgoal_and_the_executor_acts_so_many_turns() -> None:
    (task,) = LAKE.tasks("train", 1, 0)
    inner = LAKE.env.start(task)
    state = LAKE.start(task)
    assert (state.seat, state.observation, state.admissible) == ("planner", inner.observation, None)
    step = LAKE.step(state, "go  down\nthen right")
    assert (step.valid, step.reward, step.outcome) == (True, 0.0, Outcome.OPEN)
    assert step.state.seat == "executor"
    assert step.state.observation == f"{inner.observation}\nsubgoal: go down then right"
    assert step.state.admissible == inner.admissible
    seats = []
    for _ in range(2):
        plan = LAKE.plan(step.state)
        assert plan is not None
        step = LAKE.step(step.state, plan[0])
        seats.append(step.state.seat)
    assert seats == ["executor", "planner"]
    assert not LAKE.step(LAKE.start(task), " ").valid


def test_an_oracle_subgoal_is_the_last_of_the_next_actions() -> None:
    (task,) = LAKE.tasks("train", 1, 0)
    state = LAKE.start(task)
    inner, plan = LAKE.env.plan(LAKE.env.start(task)), LAKE.plan(state)
    assert inner is not None
    assert plan == (inner[1], *inner)
    acting = LAKE.step(state, plan[0]).state
    assert LAKE.plan(acting) == inner


@pytest.mark.parametrize("env", [FrozenLake(size=4), Sokoban(size=6)])
def test_the_oracle_solves_the_tasks_and_the_reward_is_the_inner_one(env: FrozenLake | Sokoban) -> None:
    wrapped = PlannerExecutor(env=env, turns=3)
    for task in wrapped.tasks("test", 5, 1):
        state, total, success = wrapped.start(task), 0.0, False
        while plan := wrapped.plan(state):
            step = wrapped.step(state, plan[0])
            state, total, success = step.state, total + step.reward, step.success
            if step.outcome is not Outcome.OPEN:
                break
        assert success
        assert total == 1.0


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"PlannerExecutor.turns: got 0; need at least 1"):
        PlannerExecutor(env=FrozenLake(), turns=0)
