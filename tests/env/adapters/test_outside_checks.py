"""Messages of the adapters about an environment, a function or an address of the wrong kind."""

# ruff: noqa: ARG002

import re
from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium
import pettingzoo
import pytest

from bough.env import Env, EnvFault, HttpEnv, OpenEnv
from bough.env.adapters.gymnasium import Gymnasium, gymnasium_env
from bough.env.adapters.pettingzoo import PettingZoo, pettingzoo_env


class Good(gymnasium.Env[int, int]):
    """Ends at the first action."""

    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: int) -> Any:
        return 0, 1.0, True, False, {}


class FourValues(Good):
    def step(self, action: int) -> Any:
        return 0, 1.0, True, {}


class OneValue(Good):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return 0


class Unseeded(Good):
    def reset(self) -> Any:  # type: ignore[override]
        return 0, {}


class Turns(pettingzoo.AECEnv[str, int, int]):
    """An AEC environment that is never played."""

    possible_agents: ClassVar[list[str]] = ["ann", "bob"]
    metadata: ClassVar[dict[str, Any]] = {"name": "turns"}


class AtOnce(pettingzoo.ParallelEnv[str, int, int]):
    """A parallel environment that is never played."""

    possible_agents: ClassVar[list[str]] = ["ann", "bob"]
    metadata: ClassVar[dict[str, Any]] = {"name": "at_once"}


def nothing() -> None: ...


def played(env: Env) -> None:
    env.step(env.start(env.tasks("train", 1, 0)[0]), "0")


def test_a_class_makes_an_environment() -> None:
    played(gymnasium_env(Good))


def nested() -> Callable[[], Good]:
    def make() -> Good:
        return Good()

    return make


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Good(), "gymnasium_env.make: got an object of the class Good; need a function or a class.*return Good"),
        (nested(), "gymnasium_env.make: got the function .*; need one at the top of a module or a file"),
        (Turns, "Gymnasium.make: got Turns, an environment of PettingZoo.*use `pettingzoo_env`"),
        (nothing, "Gymnasium.make: got NoneType without reset, step, action_space; need an environment on gymnasium"),
        (Unseeded, "Gymnasium.make: got Unseeded, whose reset takes no seed; need `reset"),
        (OneValue, r"Gymnasium.make: reset of OneValue returned one int; need \(observation, info\)"),
        (FourValues, r"Gymnasium.make: step of FourValues returned 4 values; need \(observation, reward, terminated"),
        ("Nowhere-v9", "Gymnasium.id: got 'Nowhere-v9'.*need an id of gymnasium.registry"),
        ("no_such_package:Nowhere-v9", "Gymnasium.id: got 'no_such_package:Nowhere-v9'.*need an id"),
    ],
)
def test_what_is_no_environment_of_gymnasium_is_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        played(gymnasium_env(make))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Turns(), "pettingzoo_env.make: got an object of the class Turns; need a function or a class"),
        (Good, "pettingzoo_env.make: got Good; need an AEC .*for one of Gymnasium use `gymnasium_env`"),
        (nothing, "pettingzoo_env.make: got NoneType; need an AEC environment of PettingZoo, with `possible_agents`$"),
        (AtOnce, "pettingzoo_env.make: got AtOnce without observe.*whose agents act at once.*parallel_to_aec"),
    ],
)
def test_what_is_no_environment_of_pettingzoo_is_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pettingzoo_env(make)


def test_arguments_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"Gymnasium.arguments: got \{'size': 3\}; Good does not take them"):
        played(gymnasium_env(Good, arguments={"size": 3}))
    with pytest.raises(ValueError, match=r"Gymnasium.arguments: got \{'size': 3.*need those of FrozenLake-v1"):
        played(gymnasium_env("FrozenLake-v1", arguments={"size": 3}))
    with pytest.raises(ValueError, match=r"pettingzoo_env.arguments: got \{'size': 3\}; nothing does not take them"):
        pettingzoo_env(nothing, arguments={"size": 3})


def test_an_address_without_a_function_is_named() -> None:
    with pytest.raises(ValueError, match=r"Gymnasium.make: .*gone.py"):
        played(Gymnasium(make="gone.py:lake"))
    with pytest.raises(ValueError, match=r"PettingZoo.make: .*no_such_module"):
        played(PettingZoo(make="no_such_module:game", agents=("ann", "bob")))


@pytest.mark.parametrize(
    ("url", "fix"),
    [("localhost:8000", "did you mean http://localhost:8000"), ("host/webshop", "did you mean http://host/webshop"),
     ("", ""), ("http://", ""), ("ftp://host", ""), ("http://host:port", ""), ("http://[", "")],
)  # fmt: skip
def test_a_url_is_an_address(url: str, fix: str) -> None:
    message = f"got {re.escape(repr(url))}; need an address such as http://host:8000.*{re.escape(fix)}"
    with pytest.raises(ValueError, match=f"HttpEnv.url: {message}"):
        HttpEnv(url=url, items=3)
    with pytest.raises(ValueError, match=f"OpenEnv.url: {message}"):
        OpenEnv(url=url)


def test_a_server_that_is_not_there_is_named() -> None:
    env = HttpEnv(url="http://127.0.0.1:9/webshop", items=30)
    with pytest.raises(EnvFault, match=r"HttpEnv.url: got no answer from http://127.0.0.1:9.*start it, or correct url"):
        env.start(env.tasks("train", 1, 0)[0])
    other = OpenEnv(url="http://127.0.0.1:9")
    with pytest.raises(EnvFault, match=r"OpenEnv.url: got no session at ws://127.0.0.1:9.*start it, or correct url"):
        other.start(other.tasks("train", 1, 0)[0])
