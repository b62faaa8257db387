from pathlib import Path

import pytest

from bough.cli.find import find_run
from bough.policies.pretrained import pretrained
from bough.policies.smollm2 import smollm2
from bough.policy import Lora, Pretrained
from bough.worlds.shop.preset import shop
from bough.worlds.sokoban.preset import sokoban


@pytest.mark.parametrize("world", [shop(), sokoban()], ids=lambda world: world.name)
def test_it_replaces_what_depends_on_the_model_and_keeps_the_task(world) -> None:
    made = smollm2(world)
    assert isinstance(made.policy, Pretrained)
    assert made.policy.lora is None
    assert made.optimizer.learning_rate < 1e-4
    assert made.warmup.epochs == 2
    assert made.warmup.demonstrations == world.warmup.demonstrations
    for name in ("env", "context", "parser", "limits", "sampling", "rewards", "schedule", "tasks", "evaluation"):
        assert getattr(made, name) == getattr(world, name), name


def test_adapters_learn_faster() -> None:
    whole, adapted = smollm2(shop()), smollm2(shop(), lora=True)
    assert adapted.policy == Pretrained(path=whole.policy.path, context_tokens=whole.policy.context_tokens, lora=Lora())
    assert adapted.optimizer.learning_rate > whole.optimizer.learning_rate


@pytest.mark.parametrize("name", ["model", "small.gguf"])
def test_a_folder_and_a_file_are_presets(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.mkdir() if name == "model" else path.touch()
    run = find_run("grpo", "shop", str(path))
    assert run.world == pretrained(shop(), path=str(path))


@pytest.mark.parametrize(("limit", "tokens"), [(300, 300), (40_960, 2048)])
def test_a_folder_has_at_most_its_own_context(limit: int, tokens: int, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(f'{{"max_position_embeddings": {limit}}}')
    for asked, expected in ((None, tokens), (7, 7)):
        policy = pretrained(shop(), path=str(tmp_path), context_tokens=asked).policy
        assert isinstance(policy, Pretrained)
        assert policy.context_tokens == expected
