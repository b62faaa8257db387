"""Environments of Gymnasium as text."""

# ruff: noqa: ARG001, ARG002

from typing import Any

import pytest

from bough.env import Branching, EnvFault, Replay
from bough.tree import Outcome

gymnasium = pytest.importorskip("gymnasium")

from bough.env.gymnasium import Gymnasium, gymnasium_env, plain  # noqa: E402

MOVES = ("left", "down", "right", "up")


def lake(**changes: Any) -> Replay:
    return gymnasium_env("FrozenLake-v1", arguments={"is_slippery": False}, actions=MOVES, **changes)


class Echo(gymnasium.Env[str, str]):
    """Repeats a text; "bye" ends well."""

    def __init__(self, stop: str = "bye") -> None:
        self.stop = stop
        self.action_space = gymnasium.spaces.Text(12, charset="abcdefghijklmnopqrstuvwxyz")
        self.observation_space = gymnasium.spaces.Text(12)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return f"hello {self.np_random.integers(100)}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return action, 0.5, action == self.stop, False, {"said": action}


def echo(stop: str = "bye") -> Echo:
    return Echo(stop)


def loud(observation: str, info: dict[str, Any]) -> str:
    return observation.upper()


def said_it(reward: float, terminated: bool, info: dict[str, Any]) -> bool:
    return info.get("said") == "yes"


def test_a_lake_is_crossed_by_names_of_actions() -> None:
    env = lake()
    (task,) = env.tasks("train", 1, 0)
    state = env.start(task)
    assert state.observation.startswith("[S]FFF")
    assert state.admissible == MOVES
    steps = []
    for move in ("down", "down", "right", "right", "down", "right"):
        steps.append(env.step(state, move))
        state = steps[-1].state
    assert [step.outcome for step in steps] == [Outcome.OPEN] * 5 + [Outcome.TERMINATED]
    assert (steps[-1].reward, steps[-1].success) == (1.0, True)
    assert state.observation.endswith("[G]")


def test_an_earlier_state_is_stepped_again() -> None:
    env = lake()
    start = env.start(env.tasks("train", 1, 0)[0])
    down, right = env.step(start, "down"), env.step(start, "right")
    assert right.replayed_steps == 0 or right.state.observation != down.state.observation
    assert env.step(down.state, "down").state.observation == env.step(down.state, "down").state.observation


def test_an_earlier_state_without_replay_is_a_fault() -> None:
    env = lake().env
    assert env.branching is Branching.NONE
    start = env.start(env.tasks("train", 1, 0)[0])
    env.step(start, "down")
    with pytest.raises(EnvFault, match="need Replay"):
        env.step(start, "down")


@pytest.mark.parametrize("action", ["", "north", "\ud800", "0", "down down", '{"a": 1}', "x" * 100_000])
def test_an_action_outside_of_the_space_changes_nothing_but_the_count(action: str) -> None:
    env = lake(max_steps=2)
    start = env.start(env.tasks("train", 1, 0)[0])
    step = env.step(start, action)
    assert (step.valid, step.reward, step.outcome) == (False, 0.0, Outcome.OPEN)
    assert step.state.observation == start.observation
    assert env.step(step.state, action).outcome is Outcome.TRUNCATED


def test_a_space_of_texts_and_functions_of_the_user() -> None:
    env = gymnasium_env(echo, arguments={"stop": "yes"}, text=loud, success=said_it)
    first, second = env.tasks("train", 2, 0)
    state = env.start(first)
    assert state.observation.startswith("HELLO ")
    assert state.observation == env.start(first).observation
    assert {state.observation, env.start(second).observation} != {state.observation}
    assert not env.step(state, "No!").valid
    step = env.step(env.start(first), "yes")
    assert (step.state.observation, step.outcome, step.success) == ("YES", Outcome.TERMINATED, True)


def test_another_space_reads_json() -> None:
    env = gymnasium_env("Pendulum-v1", max_steps=3)
    state = env.start(env.tasks("dev", 1, 0)[0])
    assert env.step(state, "[0.5]").valid
    for wrong in ("[9.0]", "0.5 0.5", "[[1]]", "null", "[1, 2]"):
        assert not env.step(state, wrong).valid


def test_a_mask_of_actions() -> None:
    env = gymnasium_env("Taxi-v4")
    state = env.start(env.tasks("train", 1, 0)[0])
    assert state.admissible is not None
    assert 0 < len(state.admissible) < 6


def test_splits_share_no_seed() -> None:
    seeds = [{task.data["seed"] for task in lake().tasks(split, 50, 3)} for split in ("train", "dev", "test")]
    assert not seeds[0] & seeds[1] | seeds[0] & seeds[2] | seeds[1] & seeds[2]


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match="need one of the two"):
        Gymnasium()
    with pytest.raises(ValueError, match=r"need an id of gymnasium\.registry"):
        gymnasium_env("Nowhere-v0").start(lake().tasks("train", 1, 0)[0])
    env = gymnasium_env("FrozenLake-v1", actions=("left",))
    with pytest.raises(ValueError, match="got 1 names; need 4"):
        env.start(env.tasks("train", 1, 0)[0])


def test_colours_become_brackets() -> None:
    assert plain("  (Up)\n\x1b[41mS\x1b[0mF\n\x1b[34;1mR\x1b[0m\x1b[43m \x1b[0m") == "  (Up)\n[S]F\nR[ ]"
