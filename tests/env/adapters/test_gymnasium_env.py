"""Environments of Gymnasium as text."""

# ruff: noqa: ARG001, ARG002

from typing import Any

import gymnasium
import numpy as np
import pytest

from bough.env import Branching, EnvFault, Replay
from bough.env.adapters.gymnasium import Gymnasium, gymnasium_env, plain
from bough.evaluate import CheckSizes, check_env
from bough.tree import Outcome

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


SPACES = gymnasium.spaces


class Keeps(gymnasium.Env[str, Any]):
    """Shows the action that it executed."""

    def __init__(self, space: str) -> None:
        self.action_space = KEPT[space]
        self.observation_space = SPACES.Text(1000)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return "", {}

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return repr(action), 0.0, False, False, {}


def keeps(space: str) -> Keeps:
    return Keeps(space)


SMALL = SPACES.Box(0, 1, (1,))
KEPT: dict[str, Any] = {
    "dict": SPACES.Dict(a=SPACES.Discrete(3), b=SMALL),
    "tuple": SPACES.Tuple((SPACES.Discrete(3), SPACES.Dict(t=SPACES.Text(5)))),
    "sequence": SPACES.Sequence(SPACES.Discrete(3)),
    "stack": SPACES.Sequence(SMALL, stack=True),
    "multi": SPACES.MultiDiscrete([3, 3]),
    "bits": SPACES.MultiBinary(2),
    "one of": SPACES.OneOf((SPACES.Discrete(3), SMALL)),
    "graph": SPACES.Graph(node_space=SMALL, edge_space=SPACES.Discrete(3)),
    "integers": SPACES.Box(0, 255, (2,), "uint8"),
    "from 1": SPACES.Discrete(3, start=1),
    "from -1": SPACES.Discrete(3, start=-1),
    "from 100": SPACES.Discrete(2, start=100),
    "small type": SPACES.Discrete(3, start=5, dtype=np.int8),
    "multi from": SPACES.MultiDiscrete([2, 3], start=[1, -1]),
    "dict from": SPACES.Dict(a=SPACES.Discrete(2, start=3), b=SPACES.MultiDiscrete([2], start=[7])),
    "tuple from": SPACES.Tuple((SPACES.Discrete(2, start=-2), SPACES.Discrete(2, start=10))),
    "sequence from": SPACES.Sequence(SPACES.Discrete(2, start=4)),
    "one of from": SPACES.OneOf((SPACES.Discrete(2, start=4), SPACES.Discrete(2, start=-4))),
}


@pytest.mark.parametrize(
    ("space", "action", "valid"),
    [
        ("dict", '{"a": 0, "b": [0.5]}', True),
        ("dict", '{"a": [0], "b": [[0.5]]}', False),
        ("dict", '{"a": 0}', False),
        ("dict", '{"a": 0, "b": [0.5], "c": 1}', False),
        ("dict", '{"a": 0.5, "b": [0.5]}', False),
        ("dict", '{"a": true, "b": [0.5]}', False),
        ("tuple", '[2, {"t": "hello"}]', True),
        ("tuple", '[3, {"t": "hello"}]', False),
        ("tuple", "[2]", False),
        ("sequence", "[0, 1, 2]", True),
        ("sequence", "[0, 3]", False),
        ("stack", "[[0.5], [0.25]]", True),
        ("stack", "1", False),
        ("stack", "[1]", False),
        ("multi", "[1, 0]", True),
        ("multi", "[1.7, 0]", False),
        ("multi", "[1.0, 0]", False),
        ("multi", "[1, 3]", False),
        ("multi", '["1", "0"]', False),
        ("bits", "[1, 0]", True),
        ("bits", "[0.5, 0]", False),
        ("one of", "[1, [0.5]]", True),
        ("one of", "[1, 0]", False),
        ("one of", "[-1, [0.5]]", False),
        ("graph", '{"nodes": [[0], [1]], "edges": [2], "edge_links": [[0, 1]]}', True),
        ("graph", '{"nodes": [[0], [1]]}', True),
        ("graph", '{"nodes": [[0], [1]], "edges": [2], "edge_links": [[0, 2]]}', False),
        ("integers", "[0, 255]", True),
        ("integers", "[0, 256]", False),
        ("integers", "[0, 1.5]", False),
        ("integers", "[" * 50_000, False),
        ("multi from", "[2, 1]", True),
        ("multi from", "[0, 0]", False),
        ("multi from", "[1, 2]", False),
        ("dict from", '{"a": 4, "b": [8]}', True),
        ("dict from", '{"a": 0, "b": [8]}', False),
        ("dict from", '{"a": 3, "b": [0]}', False),
        ("tuple from", "[-2, 11]", True),
        ("tuple from", "[0, 10]", False),
        ("tuple from", "[-1, 1]", False),
        ("sequence from", "[4, 5]", True),
        ("sequence from", "[0, 1]", False),
        ("one of from", "[1, -4]", True),
        ("one of from", "[0, -4]", False),
    ],
)
def test_an_element_of_any_space_is_its_own_json(space: str, action: str, valid: bool) -> None:
    env = gymnasium_env(keeps, arguments={"space": space})
    step = env.step(env.start(env.tasks("train", 1, 0)[0]), action)
    assert (step.valid, bool(step.state.observation)) == (valid, valid)


@pytest.mark.parametrize(
    ("space", "elements"),
    [("from 1", (1, 2, 3)), ("from -1", (-1, 0, 1)), ("from 100", (100, 101)), ("small type", (5, 6, 7))],
)
@pytest.mark.parametrize("named", [False, True])
def test_an_element_of_a_discrete_space_is_called_by_its_number(
    space: str, elements: tuple[int, ...], named: bool
) -> None:
    names = tuple("abc"[: len(elements)]) if named else ()
    env = gymnasium_env(keeps, arguments={"space": space}, actions=names)
    words = names or tuple(map(str, elements))
    state = env.start(env.tasks("train", 1, 0)[0])
    assert state.admissible == words
    for word, element in zip(words, elements, strict=True):
        step = env.step(state, word)
        assert (step.valid, step.state.observation) == (True, str(element))
    for word in {"0", "1", "2", "-2", "99", "102", "+1", "1.0"} - {*words}:
        assert not env.step(state, word).valid


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


def test_seeds_that_start_alike_are_different_tasks() -> None:
    """Every seed of FrozenLake starts on the same map; the seed decides where the ice slips."""
    slippery = gymnasium_env("FrozenLake-v1", actions=MOVES)
    report = check_env(slippery, sizes=CheckSizes(tasks=3, walks=2, episodes=8, seconds=5), only=("splits",))
    assert not report.failures
