"""The interpreter of `AlfWorld` against the engine the games were written for."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.missing import need

from bough.env import Replay, State
from bough.tree import Outcome, Task
from bough.worlds.alfworld import AlfWorld, OriginalAlfWorld
from bough.worlds.alfworld.env import source
from bough.worlds.alfworld.rooms import TASK_TYPES

need("fast_downward", "alfworld")


def likely(rng: random.Random, state: State) -> str:
    """A random command, more often one that changes the room."""
    commands = list(state.admissible or ())
    acts = [each for each in commands if each.split()[0] not in ("go", "examine", "look", "inventory", "help", "close")]
    return rng.choice(acts if acts and rng.random() < 0.6 else commands)


def compare(env: AlfWorld, task: Task, seed: str) -> None:
    """Plays random commands in both until the episode ends."""
    original, rng = OriginalAlfWorld(like=env), random.Random(seed)
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


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_both_play_the_same(task_type: str) -> None:
    env = AlfWorld(task_types=(task_type,), receptacles=4, objects=5, verbs=(), max_steps=30, expert="planner")
    compare(env, env.tasks("train", 1, 7)[0], task_type)


def test_both_play_the_same_where_receptacles_share_a_place(tmp_path: Path) -> None:
    env = AlfWorld(task_types=("pick_and_place_simple",), receptacles=4, objects=8, verbs=(), max_steps=60)
    domain, problem, grammar = source(env, env.tasks("train", 1, 3)[0])
    objects, _, facts = problem.partition("(:init")
    problem = f"{objects}(:init{facts.replace('loc_bar_1', 'loc_bar_0').replace('loc_bar_2', 'loc_bar_0')}"
    (tmp_path / "train").mkdir()
    game = {"pddl_domain": domain, "pddl_problem": problem, "grammar": grammar, "solvable": True}
    (tmp_path / "train" / "game.tw-pddl").write_text(json.dumps(game))
    (tmp_path / "train" / "traj_data.json").write_text('{"task_type": "pick_and_place_simple"}')
    folder = replace(env, games=str(tmp_path), expert="planner")
    for seed in ("a", "b", "c"):
        compare(folder, folder.tasks("train", 1, 0)[0], seed)


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
