"""Models of the hub by their ids, as commands take them."""

import json
from pathlib import Path

import pytest
from tests.hub_server import Hub
from tests.policy import folders
from tests.small import world

from bough.cli.find import evaluated, find_model, find_policy, split_target
from bough.config import ConfigError
from bough.hub import HubError
from bough.plan import read_model
from bough.policy import Pretrained


@pytest.fixture
def commit(hub: Hub) -> str:
    config = {**folders.CONFIGS["qwen3"].to_dict(), "max_position_embeddings": 1024}
    return hub.add("org/name", {"config.json": json.dumps(config).encode(), "model.safetensors": b""})


def test_a_policy(commit: str) -> None:
    for name in ("org/name", "org/name@main", f"org/name@{commit}"):
        made = find_policy(name)(world())
        assert made.policy == Pretrained(path=name, context_tokens=1024)
    _, preset = evaluated(None, world(), "org/name")
    assert preset is not None
    assert preset(world()).policy == Pretrained(path="org/name", context_tokens=1024)


def test_a_target(hub: Hub) -> None:
    assert find_model(Path("org/name@main")) == Pretrained(path="org/name@main")
    target, _ = split_target("./org/name", [])
    assert target == Path("org/name").absolute()
    with pytest.raises(
        ConfigError, match=r"which is no folder and no file; need a run directory, .* a hub id \(owner/name\)"
    ):
        find_model(target)
    assert hub.asked == []


@pytest.mark.usefixtures("commit")
def test_the_config_of_a_plan(hub: Hub) -> None:
    assert read_model(Path("org/name")).name == "org/name"
    assert hub.downloads() == ["config.json"]
    with pytest.raises(HubError, match=r"got 'org/none', taken for the hub id of a model, .*'org/name'.*which http"):
        read_model(Path("org/none"))
