import json
import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import folders
import pytest
import torch
from safetensors.torch import load_file, save_file

from bough.policy import Lora, Pretrained
from bough.policy.chat import ChatRenderer
from bough.tree import Message


def build(path: Path | str, **fields: object) -> None:
    Pretrained(path=str(path), device="cpu", **fields).build()


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"Pretrained.path: got '.*nowhere', which is no folder and no file; need"
    ):
        build(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"Pretrained.path: got ''; need a folder"):
        Pretrained(path="")


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("")
    with pytest.raises(NotADirectoryError, match=r"need the folder with config.json, weights and tokenizer"):
        build(tmp_path / "model")


def test_a_model_in_the_cache_needs_no_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr("socket.socket.connect", connect)
    monkeypatch.setattr("socket.getaddrinfo", connect)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    cached = tmp_path / "models--org--name"
    folders.folder(cached / "snapshots" / "0123")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0123")
    build("org/name")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.json", "no config in .*; need config.json"),
        ("model.safetensors", r"no weights in .*; need \*.safetensors or \*.bin"),
        ("tokenizer.json", "no tokenizer in .*; need tokenizer.json"),
    ],
)
def test_a_missing_file(file: str, message: str, tmp_path: Path) -> None:
    (folders.folder(tmp_path) / file).unlink()
    with pytest.raises(FileNotFoundError, match=message):
        build(tmp_path)


@pytest.mark.parametrize(
    ("file", "what"),
    [("config.json", "config"), ("model.safetensors", "model"), ("tokenizer.json", "tokenizer")],
)
def test_a_truncated_file(file: str, what: str, tmp_path: Path) -> None:
    broken = folders.folder(tmp_path) / file
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    with pytest.raises(OSError, match=f"can't read the ({what}) at '{tmp_path}': .+; need a complete folder"):
        build(tmp_path)


def test_weights_of_another_config(tmp_path: Path) -> None:
    config = folders.folder(tmp_path) / "config.json"
    fields = json.loads(config.read_text())
    config.write_text(json.dumps({**fields, "num_hidden_layers": 3}))
    with pytest.raises(ValueError, match=r"got weights that lack 9 of the config, first 'model.layers.2"):
        build(tmp_path)


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the weights in a folder."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("family", "fields", "message"),
    [
        ("llama", {"num_hidden_layers": 1}, "got 9 weights that the config does not use, first 'model.layers.1.input"),
        (
            "qwen3",
            {"model_type": "llama", "architectures": None},
            "got 4 weights .* not use, first .*0.self_attn.k_norm",
        ),
        (
            "qwen2",
            {"model_type": "llama", "architectures": None},
            "got 6 weights .* not use, first .*0.self_attn.k_proj.b",
        ),
        ("llama", {"model_type": "qwen2", "architectures": None}, "lack 6 of the config, first .*k_proj.bias"),
    ],
)
def test_a_config_of_other_weights(family: str, fields: dict[str, object], message: str, tmp_path: Path) -> None:
    config = folders.folder(tmp_path, family) / "config.json"
    changed = {**json.loads(config.read_text()), **fields}
    changed.pop("layer_types", None)
    config.write_text(json.dumps(changed))
    with pytest.raises(ValueError, match=message):
        build(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("lm_head.weight"), "lack 1 of the config, first 'lm_head.weight'"),
        (lambda weights: weights.pop("model.norm.weight"), "lack 1 of the config, first 'model.norm.weight'"),
        (lambda weights: weights.update({"v_head.weight": torch.ones(1)}), "does not use, first 'v_head.weight'"),
        (lambda weights: weights["model.norm.weight"].fill_(math.nan), r"nan or infinite in float32 in 1 .*model.norm"),
        (lambda weights: weights["lm_head.weight"][3].fill_(-math.inf), "nan or infinite in float32 in 1 .*'lm_head"),
    ],
)
def test_weights_of_which_one_is_not_the_models(
    change: Callable[[dict[str, torch.Tensor]], object], message: str, tmp_path: Path
) -> None:
    rewrite(folders.folder(tmp_path), change)
    with pytest.raises(ValueError, match=f"model at '{tmp_path}': got .*weights .*{message}"):
        build(tmp_path)


def test_weights_that_a_narrow_dtype_can_not_hold(tmp_path: Path) -> None:
    def large(weights: dict[str, torch.Tensor]) -> None:
        weights["model.norm.weight"] = torch.full_like(weights["model.norm.weight"], 1e39, dtype=torch.float64)

    rewrite(folders.folder(tmp_path), large)
    build(tmp_path, dtype="float64")
    with pytest.raises(ValueError, match=r"nan or infinite in bfloat16 in 1 tensors, first 'model.norm.weight'"):
        build(tmp_path, dtype="bfloat16")


def test_a_head_beside_tied_embeddings_and_old_rotary_frequencies_are_fine(tmp_path: Path) -> None:
    def add(weights: dict[str, torch.Tensor]) -> None:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
        weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)

    rewrite(folders.folder(tmp_path, "qwen3"), add)
    build(tmp_path)


def test_shards_are_those_of_the_index(tmp_path: Path) -> None:
    folder = folders.folder(tmp_path)
    folders.AutoModelForCausalLM.from_pretrained(folder).save_pretrained(folder, max_shard_size="40KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    for older in (folder / "model.safetensors", folder / "model-00001-of-00002.safetensors"):
        shutil.copy(shards[0], older)
        with pytest.raises(OSError, match=f"got {older.name} in .*index.json does not list; need one set of weights"):
            build(folder)
        older.unlink()
    build(folder)
    shards[1].unlink()
    with pytest.raises(FileNotFoundError, match=f"got no {shards[1].name} in .*; model.safetensors.index.json lists"):
        build(folder)
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(OSError, match=r"can't read model.safetensors.index.json"):
        build(folder)


def test_adapters_beside_their_base_are_not_loaded(tmp_path: Path) -> None:
    (folders.folder(tmp_path) / "adapter_config.json").write_text("{}")
    with pytest.raises(OSError, match=r"got adapters, 'adapter_config.json', .*; need whole weights: merge them"):
        build(tmp_path)


@pytest.mark.parametrize(
    ("kept", "lost"),
    [(lambda _: False, 37), (lambda token: token != "7", 1), (lambda token: not token.isdigit(), 10)],
)
def test_a_vocabulary_that_loses_text(kept: Callable[[str], bool], lost: int, tmp_path: Path) -> None:
    file = folders.folder(tmp_path) / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    vocabulary = {
        token: place for token, place in tokenizer["model"]["vocab"].items() if token[0] == "<" or kept(token)
    }
    tokenizer["model"] |= {"vocab": vocabulary, "merges": []}
    file.write_text(json.dumps(tokenizer))
    with pytest.raises(ValueError, match=rf"got a vocabulary of \d+ tokens that loses {lost} of the characters"):
        build(tmp_path)


def test_a_tokenizer_whose_rules_take_too_many_steps(tmp_path: Path) -> None:
    file = folders.folder(tmp_path) / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    split = {"type": "Split", "pattern": {"Regex": r"(?=(\w+)*\d{12})"}, "behavior": "Isolated", "invert": False}
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, tokenizer["pre_tokenizer"]]}
    file.write_text(json.dumps(tokenizer))
    with pytest.raises(ValueError, match=r"got a tokenizer that fails on 'abc.*need the complete tokenizer\.json"):
        build(tmp_path)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_in_the_folder_never_runs(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked"))
    place = folders.folder(tmp_path) / file
    fields = json.loads(place.read_text())
    own = {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M", "AutoTokenizer": ["own.T", None]}
    place.write_text(json.dumps({**fields, "auto_map": own, "model_type": "own", "tokenizer_class": "T"}))
    (tmp_path / "own.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nclass C: ...\nclass M: ...\nclass T: ...\n"
    )
    with pytest.raises(OSError, match="needs code of its own folder, which Bough does not run; need one of an archi"):
        build(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_config_with_more_layers_than_there_are_tensors(tmp_path: Path) -> None:
    config = folders.folder(tmp_path) / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "num_hidden_layers": 400, "limit": math.inf}))
    with pytest.raises(OSError, match=r"got 400 layers in .* with \d+ tensors; need its own config"):
        build(tmp_path)


def test_embeddings_of_zeros(tmp_path: Path) -> None:
    file = folders.folder(tmp_path) / "model.safetensors"
    weights = load_file(file)
    save_file({name: torch.zeros_like(weight) for name, weight in weights.items()}, file, {"format": "pt"})
    with pytest.raises(ValueError, match="got embeddings that are all 0; need the weights of a trained model"):
        build(tmp_path)


def test_a_tokenizer_without_a_template(tmp_path: Path) -> None:
    folders.folder(tmp_path, template=None)
    with pytest.raises(ValueError, match=f"Pretrained '{tmp_path}': got a tokenizer without a chat template"):
        build(tmp_path)


def test_a_tokenizer_without_the_end_of_turn(tmp_path: Path) -> None:
    folders.folder(tmp_path)
    folders.tokenizer(folders.CHATML, special=["<|endoftext|>"]).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"ends an assistant's message with '<\|im_end\|>.*finds no special token"):
        build(tmp_path)


def test_a_tokenizer_of_a_bigger_model(tmp_path: Path) -> None:
    folders.folder(tmp_path)
    folders.tokenizer(folders.CHATML, special=[*folders.SPECIAL, *(f"<|{i}|>" for i in range(200))]).save_pretrained(
        tmp_path
    )
    with pytest.raises(ValueError, match=r"got a tokenizer of \d+ tokens for a model of 384; need the model's own"):
        build(tmp_path)


WRITES = "{{% for m in {} %}}<|im_start|>{{{{ m.role }}}}\n{{{{ {} }}}}<|im_end|>\n{{% endfor %}}"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('no') }}", "got a chat template that fails: no"),
        ("{{ messages[-1].content }}<|im_end|>", "got a chat template that leaves out the assistant's messages"),
        ("{% for m in messages %}{{ nothing.here }}{% endfor %}", "got a chat template that fails"),
        ("{{ 1 // 0 }}", "got a chat template that fails: ZeroDivisionError: "),
        ("{{ 2.0 ** 99999 }}", "got a chat template that fails: OverflowError: "),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "got a chat template that fails: RecursionError: "),
        ("{{ '%999999999d' % 1 }}", "got a chat template that fills the memory"),
        (
            "{% if messages | length > 9 %}{{ '%999999999d' % 1 }}{% endif %}",
            "got a chat template that fills the memory",
        ),
        (
            WRITES.format("messages if m.role != 'user'", "m.content"),
            "leaves out, changes or moves the user's messages",
        ),
        (WRITES.format("messages[1:]", "m.content"), "leaves out, changes or moves the user's"),
        (WRITES.format("messages", "m.content[:99]"), "leaves out, changes or moves the user's"),
        (WRITES.format("messages", "m.content | upper"), "leaves out, changes or moves the user's"),
        (WRITES.format("messages", "m.content ~ '\\ud800'"), "got a chat template that .*half of a surrogate pair"),
        ("{{ 'a' * 200000 }}", "got a chat template that writes 200,000 characters; need at most 100,"),
    ],
)
def test_a_template_of_no_use(template: str, message: str, tmp_path: Path) -> None:
    folders.folder(tmp_path, template=template)
    with pytest.raises(ValueError, match=message):
        build(tmp_path)


def test_a_template_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.policy.template.DEADLINE_S", 1.0)
    numbers = "range(99999)"
    folders.folder(
        tmp_path, template=f"{{% for a in {numbers} %}}{{% for b in {numbers} %}}{{% endfor %}}{{% endfor %}}"
    )
    with pytest.raises(ValueError, match="got a chat template that did not end within 1 s of processor time"):
        build(tmp_path)


def test_a_template_that_does_not_end_for_a_later_text(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    waits = "{% for m in messages if 'now' in m.content %}" + loops + "{% endfor %}"
    renderer = ChatRenderer(folders.tokenizer(folders.CHATML + waits), template={})
    monkeypatch.setattr("bough.policy.template.DEADLINE_S", 0.1)
    monkeypatch.setattr("bough.usercode.processor_limit.CHECK_S", 0.01)
    with pytest.raises(ValueError, match=r"got a chat template that did not end within 0\.1 s of processor time"):
        renderer.render([Message(role="user", content="now")])
    assert renderer.render([Message(role="user", content="later")])


def test_adapters_without_peft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders.folder(tmp_path)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ImportError, match=r"Lora needs peft.*pip install 'bough-rl\[lora\]'"):
        build(tmp_path, lora=Lora())


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (("no_proj",), r"Lora.targets: got \('no_proj',\); need names of linear layers"),
        (("q_proj", "lm_head"), "need layers other than the embedding and the head"),
        (("embed_tokens",), "need layers other than the embedding and the head"),
    ],
)
def test_adapters_in_the_wrong_place(targets: tuple[str, ...], message: str, tmp_path: Path) -> None:
    folders.folder(tmp_path)
    with pytest.raises(ValueError, match=message):
        build(tmp_path, lora=Lora(targets=targets))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rank": 0}, "Lora.rank: got 0; need at least 1"),
        ({"alpha": 0.0}, "Lora.alpha: got 0.0; need a number above 0"),
        ({"targets": ()}, "Lora.targets: got \\(\\); need names"),
    ],
)
def test_adapters_that_make_no_sense(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Lora(**fields)


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    folders.folder(tmp_path)
    with pytest.raises(ValueError, match=r"device: got 'cuda:77' \(.*\); need 'auto', 'cpu' or a device"):
        Pretrained(path=str(tmp_path), device="cuda:77").build()


def test_adapters_depend_on_their_seed_alone(tmp_path: Path) -> None:
    folders.folder(tmp_path)
    first, again, other = (
        Pretrained(path=str(tmp_path), device="cpu", lora=Lora(seed=seed)).build().state() for seed in (0, 0, 1)
    )
    name = next(name for name in first if "lora_A" in name)
    assert first[name].equal(again[name])
    assert not first[name].equal(other[name])
