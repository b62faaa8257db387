"""Models of the hub: which files are downloaded, and what a name is taken for."""

import json
from pathlib import Path

import folders
import pytest
from tests.hub_server import Hub, files_of
from tests.small import world

from bough.hub import HubError
from bough.policies.pretrained import pretrained
from bough.policy import Pretrained
from bough.policy.hub_model import model_files
from bough.policy.locate import locate, position_limit, target_path

INDEX = "model.safetensors.index.json"
WRITTEN = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
OTHERS = dict.fromkeys(("README.md", "own.py", "pytorch_model.bin", "model.gguf", "onnx/model.safetensors"), b"other")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return files_of(folders.folder(tmp_path_factory.mktemp("model")))


def test_a_model_is_built_from_its_id(hub: Hub, model: dict[str, bytes]) -> None:
    own = json.dumps({**json.loads(model["config.json"]), "auto_map": {"AutoModelForCausalLM": "own.M"}}).encode()
    commit = hub.add("org/name", {**model, **OTHERS, "config.json": own})
    policy = Pretrained(path="org/name", device="cpu").build()
    assert policy.context_tokens == 256
    assert {*hub.downloads()} == {*WRITTEN, "chat_template.jinja"}
    asked = len(hub.asked)
    assert Pretrained(path="org/name").pinned_settings() == {"path": f"org/name@{commit}"}
    Pretrained(path=f"org/name@{commit}").check_files()
    assert len(hub.asked) == asked


def test_the_preset_reads_the_config_first(hub: Hub, model: dict[str, bytes]) -> None:
    hub.add("org/name", model)
    policy = pretrained(world(), path="org/name").policy
    assert policy == Pretrained(path="org/name", context_tokens=256)
    assert hub.downloads() == ["config.json"]
    with pytest.raises(HubError, match=r"got 'org/none', taken for the hub id of a model, .*which http"):
        position_limit("org/none")


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({"model_type": "gpt2", "n_positions": 128}, 128),
        ({"model_type": "qwen3", "max_position_embeddings": 64}, 64),
        ({"model_type": "bloom"}, None),
        ({"max_position_embeddings": None}, None),
    ],
)
def test_the_limit_of_positions_has_several_names(config: dict[str, object], limit: int | None, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert position_limit(str(tmp_path)) == limit
    assert pretrained(world(), path=str(tmp_path)).policy == Pretrained(
        path=str(tmp_path), context_tokens=limit or 2048
    )


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("config.json", "model.safetensors", "consolidated.safetensors"), ("config.json", "model.safetensors")),
        (
            ("config.json", INDEX, "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "a.json"),
            ("config.json", INDEX, "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"),
        ),
        (
            ("config.json", "model.safetensors", "tokenizer.model", "vocab.json", "merges.txt", "training_args.bin"),
            ("config.json", "tokenizer.model", "vocab.json", "merges.txt", "model.safetensors"),
        ),
        (
            ("config.json", "model.safetensors", "additional_chat_templates/rag.jinja", "original/tokenizer.model"),
            ("config.json", "additional_chat_templates/rag.jinja", "model.safetensors"),
        ),
    ],
)
def test_the_files_of_a_model(names: tuple[str, ...], chosen: tuple[str, ...]) -> None:
    assert model_files(dict.fromkeys(names, 1)) == [*chosen]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ("config.json", "pytorch_model.bin"),
            "which has weights as pytorch_model.bin alone, a format that can hold code",
        ),
        (("q4.gguf", "README.md"), "which has GGUF files alone; need the path of one: download q4.gguf by hf download"),
        (
            ("adapter_config.json", "adapter_model.safetensors"),
            "which has adapters alone; need whole weights: merge them",
        ),
        (
            ("model.safetensors",),
            "which has no config.json with model.safetensors or model.safetensors.index.json; need",
        ),
    ],
)
def test_a_model_of_another_format(names: tuple[str, ...], message: str, hub: Hub) -> None:
    hub.add("org/name", dict.fromkeys(names, b""))
    with pytest.raises(HubError, match=f"Pretrained.path: got 'org/name', taken for the hub id of a model, {message}"):
        Pretrained(path="org/name").check_files()


@pytest.mark.parametrize("path", ["./org/name", "/org/name", "runs/x/final", "org/model.gguf", "gpt2"])
def test_a_mistyped_path_is_not_looked_up(path: str, hub: Hub) -> None:
    with pytest.raises(FileNotFoundError, match=f"got '{path}', which is no folder and no file; need a folder with a"):
        locate(path)
    assert hub.asked == []


def test_a_name_in_a_folder_is_a_path(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs/first").mkdir(parents=True)
    assert locate("runs/first") == Path("runs/first")
    with pytest.raises(
        FileNotFoundError,
        match=r"no file in the folder 'runs'; the hub's .* name is 'runs/frist@main'; did you mean 'runs/first'",
    ):
        locate("runs/frist")
    assert hub.asked == []


def test_a_path_of_the_command_line_keeps_what_makes_it_one() -> None:
    assert target_path("org/name") == Path("org/name")
    assert target_path("./org/name") == Path("org/name").absolute()
    assert target_path("org/name/") == Path("org/name").absolute()
    assert target_path("org/name@main") == Path("org/name@main")
    assert target_path("./model") == Path("model")
