"""Every world keeps to the contract of environments: `bough check-env`, with small sizes."""

import pytest

from bough.cli.find import find_env, names
from bough.evaluate import CheckSizes, check_env

WORLDS = sorted(names("worlds"))
SMALL = CheckSizes(tasks=4, walks=4, steps=12, episodes=12, seconds=10)


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_passes_every_check(name: str) -> None:
    try:
        env = find_env(name)
        env.tasks("train", 1, 0)
    except ImportError as missing:
        pytest.skip(str(missing))
    report = check_env(env, sizes=SMALL, name=name)
    assert report.passed, "\n".join(
        f"{each.name}: got {each.got}; need {each.need}; {each.do}" for each in report.failures
    )
