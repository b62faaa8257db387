"""What every environment of the house keeps to."""

import json
import pickle
from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.env.play import actions_of, follow, seen, walk, worlds

from bough.env import Branching, Env, Oracle, Replay, Split
from bough.tree import Outcome, Task
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.quiz import Quiz
from bough.worlds.shop import Shop
from bough.worlds.sokoban import Sokoban

ENVS = {
    "lake": FrozenLake(),
    "slippery": FrozenLake(slip=0.3, size=4, max_steps=12),
    "sokoban": Sokoban(),
    "two boxes": Sokoban(boxes=2),
    "shop": Shop(),
    "quiz": Quiz(questions=8),
    "replayed lake": Replay(env=worlds.Tape()),
    "replayed slippery": Replay(env=worlds.Tape(lake=FrozenLake(slip=0.3)), keep=0),
}
every = pytest.mark.parametrize("env", ENVS.values(), ids=ENVS)
MAPS = {name: env for name, env in ENVS.items() if name not in ("shop", "quiz")}
every_map = pytest.mark.parametrize("env", MAPS.values(), ids=MAPS)
SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@every
def test_tasks_follow_from_split_count_and_seed(env: Env) -> None:
    for split in SPLITS:
        tasks = list(env.tasks(split, 8, 1))
        assert tasks == list(env.tasks(split, 8, 1))
        assert tasks[:3] == list(env.tasks(split, 3, 1))
        assert len({task.id for task in tasks}) == 8
        assert {task.id for task in tasks} != {task.id for task in env.tasks(split, 8, 2)}
        for task in tasks:
            assert Task(id=task.id, seed=task.seed, data=json.loads(json.dumps(dict(task.data)))) == task
    ids = [{task.id for task in env.tasks(split, 8, 1)} for split in SPLITS]
    assert not ids[0] & ids[1] | ids[0] & ids[2] | ids[1] & ids[2]


@every
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_the_same_task_and_actions_give_the_same_states_here_and_in_a_copy(env: Env, seed: int) -> None:
    (task,) = env.tasks("train", 1, seed)
    actions = actions_of(seed, 15)
    first = walk(env, task, actions)
    assert walk(env, task, actions) == first
    assert walk(pickle.loads(pickle.dumps(env)), pickle.loads(pickle.dumps(task)), actions) == first


@every
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_a_state_can_be_stepped_again_and_survives_pickling(env: Env, seed: int) -> None:
    assert env.branching in (Branching.COPY, Branching.REPLAY)
    (task,) = env.tasks("train", 1, seed)
    state = env.start(task)
    for action in actions_of(seed, 6):
        before = (state.observation, state.key, pickle.dumps(state.value))
        step = env.step(state, action)
        other = env.step(state, "down" if action != "down" else "left")
        assert seen(env.step(state, action)) == seen(step), "stepping elsewhere meanwhile changes nothing"
        assert seen(env.step(pickle.loads(pickle.dumps(state)), action)) == seen(step)
        assert before == (state.observation, state.key, pickle.dumps(state.value))
        assert other.state.observation
        if step.outcome != Outcome.OPEN:
            break
        state = step.state


@every_map
def test_unknown_text_costs_a_step_and_moves_nothing_and_steps_are_not_in_the_key(env: Env) -> None:
    (task,) = env.tasks("test", 1, 0)
    start = env.start(task)
    assert start.admissible
    state, outcomes = start, []
    while not outcomes or outcomes[-1] == Outcome.OPEN:
        step = env.step(state, ["", "hop", "left left"][len(outcomes) % 3])
        assert not step.valid
        assert (step.reward, step.success) == (0.0, False)
        assert (step.state.key, step.state.observation) == (start.key, start.observation)
        outcomes.append(step.outcome)
        state = step.state
        assert len(outcomes) <= 100
    assert outcomes[-1] == Outcome.TRUNCATED


@pytest.mark.parametrize("name", ["lake", "sokoban", "two boxes", "shop", "quiz"])
def test_the_oracle_solves_every_task_and_admissible_actions_are_understood(name: str) -> None:
    env = ENVS[name]
    assert isinstance(env, Oracle)
    for split in SPLITS:
        for task in env.tasks(split, 10, 0):
            start = env.start(task)
            assert all(env.step(start, action).valid for action in start.admissible or ())
            final = follow(env, start)
            assert (final.outcome, final.success) == (Outcome.TERMINATED, True)
            assert final.reward == {"shop": 1 / 5, "quiz": 1 / 8}.get(name, 1.0)


@every_map
def test_settings_are_frozen_fields_and_the_instructions_name_the_actions(env: Env) -> None:
    (task,) = env.tasks("train", 1, 0)
    with pytest.raises(FrozenInstanceError):
        setattr(env, fields(env)[0].name, None)  # type: ignore[arg-type]
    assert all(action in env.instructions for action in env.start(task).admissible or ())
