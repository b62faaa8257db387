"""The key of an environment of functions, checked by `check-env`."""

from typing import Any

from bough.env import tools_env
from bough.evaluate import CheckSizes, check_env


def bag(row: dict[str, Any]) -> list[int]:
    del row
    return []


def put(state: list[int], number: int) -> str:
    """Put a number into the bag."""
    state.append(number)
    return f"{len(state)} numbers"


def full(state: list[int], row: dict[str, Any]) -> bool:
    del row
    return len(state) > 2


def one_key(state: list[int], row: dict[str, Any]) -> str:
    del state, row
    return "bag"


def rows() -> list[dict[str, Any]]:
    return [{"prompt": f"Fill bag {number}."} for number in range(60)]


def test_the_message_about_keys_names_the_argument_of_tools_env() -> None:
    env = tools_env(tools=[put], tasks=rows, reward=full, state=bag, key=one_key)
    sizes = CheckSizes(tasks=3, walks=4, steps=5, episodes=8, processes=1, seconds=5)
    found = {check.name: check for check in check_env(env, only=("state keys",), sizes=sizes).failures}
    assert "into the function `tools_env(key=...)`, or set it to" in found["state keys"].do
