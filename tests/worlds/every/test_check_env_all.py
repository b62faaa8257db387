"""Every world keeps to the contract of environments: `bough check-env`, with small sizes."""

import pytest
from tests.missing import need_world

from bough.cli.find import find_env, names
from bough.env import Env
from bough.evaluate import CheckSizes, EnvCheck, check_env

LONGER = {"alfworld_long", "search_long"}
"""Worlds with the environment of another world, and longer tasks."""
WORLDS = sorted(set(names("worlds")) - LONGER)
SMALL = CheckSizes(tasks=3, walks=3, steps=8, episodes=10, seconds=4, processes=1)


def _wrong(env: Env, name: str) -> list[EnvCheck]:
    """The checks that the environment fails, without those that it declares."""
    return list(check_env(env, sizes=SMALL, name=name).failures)


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_passes_every_check(name: str) -> None:
    need_world(name)
    env = find_env(name)
    wrong = _wrong(env, name)
    if [each.name for each in wrong] == ["memory"]:
        # Threads of earlier tests may allocate in this process meanwhile; an environment that leaks does it again.
        wrong = _wrong(env, name)
    assert not wrong, "\n".join(f"{each.name}: got {each.got}; need {each.need}; {each.do}" for each in wrong)
