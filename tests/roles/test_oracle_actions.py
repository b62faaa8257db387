"""The actions by which the oracle solves a task."""

import asyncio

import pytest
from tests.explore.stage import World

from bough.env import Env, InProcessHost
from bough.roles.oracle_actions import oracle_actions as way_of
from bough.tree import Task
from bough.worlds.frozenlake import FrozenLake


def solved(env: Env, task: Task) -> tuple[str, ...]:
    return asyncio.run(way_of(InProcessHost(env=env), task))


LAKE = Task(id="lake", data={"rows": ["SF", "HG"]})


def test_from_the_beginning_and_from_elsewhere() -> None:
    assert solved(FrozenLake(size=2), LAKE) == ("right", "down")
    assert solved(FrozenLake(size=2), LAKE.after(["right"])) == ("down",)
    assert solved(World(length=3), Task(id="t").after(["a"])) == ("a", "a")


def test_there_may_be_none() -> None:
    assert solved(World(length=3), Task(id="t").after(["b"])) == ()
    assert solved(FrozenLake(size=2, max_steps=2), LAKE.after(["up"])) == (), "too late"


@pytest.mark.parametrize("slip", [0.0, 0.3])
def test_it_is_asked_before_every_turn(slip: float) -> None:
    """With slips, a plan is one action, and where it led shows only then."""
    env = FrozenLake(size=4, slip=slip)
    found = 0
    for task in env.tasks("train", 10, 0):
        actions = solved(env, task)
        state = env.start(task)
        for number, action in enumerate(actions, start=1):
            step = env.step(state, action)
            state = step.state
            assert step.success == (number == len(actions))
        found += bool(actions)
    assert found >= 5


def test_an_environment_without_an_oracle() -> None:
    from tests.explore.test_guided import Silent

    assert solved(Silent(), Task(id="t")) == ()
