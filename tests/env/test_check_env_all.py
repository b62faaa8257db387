"""Every world keeps to the contract of environments: `bough check-env`, with small sizes."""

import pytest

from bough.cli.find import find_env, names
from bough.env import Env
from bough.env.sandbox import SandboxError
from bough.evaluate import CheckSizes, EnvCheck, check_env

LONGER = {"alfworld_long", "search_long"}
"""Worlds with the environment of another world, and longer tasks."""
WORLDS = sorted(set(names("worlds")) - LONGER)
SMALL = CheckSizes(tasks=3, walks=3, steps=8, episodes=10, seconds=4, processes=1)
KNOWN = {
    "agent_design": {"oracle": "it makes the best edit at each step, which need not reach the target"},
    "board_games": {
        "oracle": "perfect play of both seats ends in a draw",
        "oracle after random actions": "perfect play of both seats ends in a draw",
    },
    "quiz": {"state keys": "a key names the question, and leaves out how many are left"},
    "socratic": {"garbage texts": "any text is a question to the student; the listed ones are those of the oracle"},
    "scienceworld": {"state keys": "a key has what the agent can see, and the simulator has hidden processes"},
}
"""The checks that a world fails by its design, each with the reason."""


def _wrong(env: Env, name: str) -> list[EnvCheck]:
    """The checks that the environment fails, without known ones."""
    report = check_env(env, sizes=SMALL, name=name)
    return [each for each in report.failures if each.name not in KNOWN.get(name, {})]


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_passes_every_check(name: str) -> None:
    try:
        env = find_env(name)
        env.tasks("train", 1, 0)
    except ImportError as missing:
        pytest.skip(str(missing))
    except ValueError as error:
        if not isinstance(error.__cause__, SandboxError):
            raise
        pytest.skip(str(error))
    wrong = _wrong(env, name)
    if [each.name for each in wrong] == ["memory"]:
        # Threads of earlier tests may allocate in this process meanwhile; an environment that leaks does it again.
        wrong = _wrong(env, name)
    assert not wrong, "\n".join(f"{each.name}: got {each.got}; need {each.need}; {each.do}" for each in wrong)
