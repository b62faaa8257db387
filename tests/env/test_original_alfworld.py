"""The interpreter of `AlfWorld` against the engine the games were written for."""

import random

import pytest

from bough.env import AlfWorld, OriginalAlfWorld, Replay, State
from bough.env.household.rooms import TASK_TYPES
from bough.tree import Outcome

pytest.importorskip("alfworld")
pytest.importorskip("fast_downward")
pytest.importorskip("textworld")


def likely(rng: random.Random, state: State) -> str:
    """A random command, more often one that changes the room."""
    commands = list(state.admissible or ())
    acts = [each for each in commands if each.split()[0] not in ("go", "examine", "look", "inventory", "help", "close")]
    return rng.choice(acts if acts and rng.random() < 0.6 else commands)


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_both_play_the_same(task_type: str) -> None:
    env = AlfWorld(task_types=(task_type,), receptacles=4, objects=5, verbs=(), max_steps=30, expert="planner")
    original, rng = OriginalAlfWorld(like=env), random.Random(task_type)
    (task,) = env.tasks("train", 1, 7)
    ours, theirs = env.start(task), original.start(task)
    assert ours.observation == theirs.observation
    while True:
        assert ours.admissible == theirs.admissible
        plan, reference = env.plan(ours), original.plan(theirs)
        assert (plan is None) == (reference is None)
        if plan is not None and reference is not None:
            assert len(plan) <= len(reference)  # Fast Downward's plan need not be a shortest one
        command = likely(rng, ours) if rng.random() < 0.95 else "sing"
        step, other = env.step(ours, command), original.step(theirs, command)
        assert (step.state.observation, step.reward, step.outcome, step.valid, step.success) == (
            other.state.observation,
            other.reward,
            other.outcome,
            other.valid,
            other.success,
        )
        ours, theirs = step.state, other.state
        if step.outcome != Outcome.OPEN:
            break


def test_the_planner_of_the_engine_solves_a_game_and_replay_branches() -> None:
    env = Replay(env=OriginalAlfWorld(like=AlfWorld(receptacles=3, objects=3)))
    (task,) = env.tasks("test", 1, 0)
    state = env.start(task)
    plan = env.plan(state)
    assert plan
    path = [env.step(state, plan[0])]
    for command in plan[1:]:
        path.append(env.step(path[-1].state, command))
    assert path[-1].success
    branch = env.step(path[0].state, plan[1])
    assert branch.replayed_steps == 1
    assert branch.state.observation == path[1].state.observation
