from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.forks import script

from bough.context import conversation
from bough.policy import Pretrained, Tiny
from bough.policy.vocabulary import small_tokenizer

GRID = "P _ _ O\n_ # X\n\nYou are at row 3. Moves: left, right, up, down."
TEXTS = [GRID, "go left\ngo right"] * 3
TOKENIZER = small_tokenizer(TEXTS, 512, None)


def test_each_symbol_is_one_token_wherever_it_stands() -> None:
    grid = TOKENIZER.encode("P _ P\nP O")
    assert len(grid) == 6
    assert grid[0] == grid[2] == grid[4]
    assert len(TOKENIZER.encode("left")) == 1
    assert TOKENIZER.encode("go left")[1] == TOKENIZER.encode("left")[0]


@given(st.lists(st.sampled_from([" ", "\n", "\n ", "P", "go", "é", "3", "\t", "\r", ".", "<|end|>", "日"])))
def test_text_comes_back(parts: list[str]) -> None:
    text = "".join(parts)
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


SHOW = f"""
import hashlib
from bough.context import conversation
from bough.policy import Tiny
policy = Tiny(width=32, device='cpu').build({TEXTS!r})
read = repr(policy.renderer.render(conversation('go', [], {GRID!r}))).encode()
shown = hashlib.sha256(read + b''.join(tensor.numpy().tobytes() for tensor in policy.state().values())).hexdigest()
"""


def test_the_same_texts_give_the_same_model_in_another_process() -> None:
    here: dict[str, str] = {}
    torch.manual_seed(7)
    exec(SHOW, here)
    with script(f"{SHOW}print(shown)") as there:
        assert there.wait().out.strip() == here["shown"]


def test_the_seed_changes_the_weights_and_nothing_outside() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, second = (Tiny(width=32, seed=seed, device="cpu").build(TEXTS) for seed in (0, 1))
    assert torch.rand(1) == expected
    name = "model.embed_tokens.weight"
    assert not torch.equal(first.weights()[name], second.weights()[name])


def test_the_tokenizer_is_kept_with_the_run(tmp_path: Path) -> None:
    first = Tiny(width=32, device="cpu").build(TEXTS, tmp_path / "assets")
    assert [file.name for file in (tmp_path / "assets").iterdir()] == ["tokenizer.json"]
    again = Tiny(width=32, device="cpu").build(["something else"], tmp_path / "assets")
    assert again.renderer.render(conversation("go", [], GRID)) == first.renderer.render(conversation("go", [], GRID))
    assert all(torch.equal(tensor, again.state()[name]) for name, tensor in first.state().items())


def test_a_broken_tokenizer_names_its_file(tmp_path: Path) -> None:
    Tiny(width=32, device="cpu").build(TEXTS, tmp_path)
    file = tmp_path / "tokenizer.json"
    whole = file.read_text()
    file.write_text(whole[:1000])
    with pytest.raises(ValueError, match=f"{file}: got .*; need a tokenizer: delete the file"):
        Tiny(width=32, device="cpu").build(TEXTS, tmp_path)
    file.write_text(whole.replace("<|user|>", "<|human|>"))
    with pytest.raises(ValueError, match=r"got no token <\|user\|>; need Tiny's tokenizer"):
        Tiny(width=32, device="cpu").build(TEXTS, tmp_path)


def test_a_chat_costs_one_token_a_message_and_one_to_end_an_action() -> None:
    renderer = Tiny(width=32, device="cpu").build(TEXTS).renderer
    assert (
        TOKENIZER.decode(renderer.render(conversation("go left", [], "P _")))
        == "<|system|>go left<|user|>P _<|assistant|>"
    )
    assert len(renderer.render(conversation("go left", [], "P _"))) == 3 + 4
    assert renderer.text(renderer.write("go left")) == "go left"
    assert renderer.write("left")[1:] == renderer.stop_tokens


def test_saved_it_is_an_ordinary_checkpoint(tmp_path: Path) -> None:
    tiny = Tiny(width=32, kv_heads=2, device="cpu").build(TEXTS)
    tiny.save(tmp_path)
    again = Pretrained(path=str(tmp_path), device="cpu").build()
    assert again.renderer.render(conversation("go", [], GRID)) == tiny.renderer.render(conversation("go", [], GRID))
    assert again.renderer.stop_tokens == tiny.renderer.stop_tokens
    assert all(torch.equal(tensor, again.state()[name]) for name, tensor in tiny.state().items())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers": 0}, "Tiny.layers: got 0; need at least 1"),
        ({"vocab_tokens": 100}, "Tiny.vocab_tokens: got 100; need at least 260"),
        ({"width": 100}, "Tiny.width: got 100; need a multiple of 8"),
        ({"kv_heads": 3}, "Tiny.kv_heads: got 3; need a divisor of the 4 heads"),
        ({"heads": 0}, "Tiny.heads: got 0; need at least 1"),
    ],
)
def test_sizes_that_do_not_fit(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tiny(**fields)
