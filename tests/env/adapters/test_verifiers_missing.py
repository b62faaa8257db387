"""Verifiers without its package."""

import sys

import pytest

from bough.env import Branching, Replay, Verifiers, verifiers_env


def test_the_environment_is_made_without_the_package_and_names_it_at_its_first_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("verifiers", "verifiers.v1"):
        monkeypatch.setitem(sys.modules, module, None)
    env = verifiers_env("gsm8k_v1", config={"split": "train"}, keep=2)
    assert env == Replay(env=Verifiers(taskset="gsm8k_v1", config='{"split": "train"}'), keep=2)
    assert env.branching is Branching.REPLAY
    with pytest.raises(ImportError, match=r"pip install .bough-rl\[verifiers\]"):
        env.tasks("train", 1, 0)
