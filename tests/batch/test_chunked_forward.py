"""A packed prefix tree in chunks against its texts one by one, through unmodified transformers models."""

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from bough.batch import Attend, ChunkedForward, PackedPrefixTree
from bough.policy.check_architecture import check_architecture
from bough.policy.model import CausalModel
from bough.policy.model import causal as attend_causally

VOCAB = 31
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
}
WINDOWS = ["sliding_attention", "full_attention", "sliding_attention"]
MODELS: dict[str, PreTrainedConfig] = {
    "llama": LlamaConfig(**SIZES),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, tie_word_embeddings=True),
    "qwen3 moe": Qwen3MoeConfig(**SIZES, moe_intermediate_size=16, num_experts=4, num_experts_per_tok=2),
    "mistral": MistralConfig(**SIZES, sliding_window=5),
    "gemma3": Gemma3TextConfig(**SIZES, sliding_window=4, layer_types=WINDOWS),
}


@cache
def model(name: str, dtype: torch.dtype = torch.float64) -> CausalModel:
    torch.manual_seed(0)
    causal = CausalModel(AutoModelForCausalLM.from_config(MODELS[name], dtype=dtype))
    for weight in causal.model.parameters():
        if weight.ndim == 1:
            torch.nn.init.uniform_(weight, 0.5, 1.5)
    check_architecture(causal)
    return causal


def packed(texts: list[np.ndarray], *, merge: bool, every: int = 1) -> PackedPrefixTree:
    """A token is predicted after the last token of every text, and after every `every`-th before it."""
    after = [np.arange(len(each), 0, -every) for each in texts]
    text = np.repeat(np.arange(len(texts)), [len(each) for each in after])
    return PackedPrefixTree.pack(texts, text, np.concatenate(after), merge=merge)


def gradient(
    causal: CausalModel, texts: list[np.ndarray], pull: Tensor, *, merge: bool, most: int, every: int = 1
) -> Tensor:
    """Of a weighted sum of the logits where something is predicted."""
    causal.model.zero_grad(set_to_none=True)
    for page in ChunkedForward(causal.hidden, packed(texts, merge=merge, every=every), most).backward():
        (causal.logits(page.hidden) * pull[page.trained]).sum().backward()
    weights = causal.model.parameters()
    return torch.cat([torch.zeros_like(w).flatten() if w.grad is None else w.grad.flatten() for w in weights])


def hidden(causal: CausalModel, texts: list[np.ndarray], *, merge: bool, most: int) -> Tensor:
    """After every token of every text."""
    pages = list(ChunkedForward(causal.hidden, packed(texts, merge=merge), most).forward())
    return torch.cat([page.hidden for page in pages])[torch.cat([page.trained for page in pages]).argsort()]


def texts(kind: str, seed: int) -> list[np.ndarray]:
    """Texts that begin alike, of several kinds of trees."""
    rng = np.random.default_rng(seed)

    def draw(low: int, high: int) -> list[int]:
        return rng.integers(VOCAB, size=rng.integers(low, high + 1)).tolist()

    if kind == "agents":
        stems = [draw(3, 6) for _ in range(2)]
        for _ in range(2):
            stems = [[*stem, *draw(1, 5)] for stem in stems for _ in range(2)]
        return [np.asarray(stem) for stem in stems]
    if kind == "spine":
        spine = draw(30, 40)
        return [np.asarray([*spine[:cut], *draw(1, 3)]) for cut in range(4, len(spine), 5)] + [np.asarray(spine)]
    if kind == "fork":
        return [np.asarray([1, 2, token, *draw(0, 2)]) for token in range(12)]
    if kind == "forest":
        return [np.asarray(draw(1, 9)) for _ in range(8)]
    # Every token may fork.
    return [rng.integers(2, size=rng.integers(1, 9)) for _ in range(16)]


KINDS = ["agents", "spine", "fork", "forest", "dense"]


# The experts' grouped matrix product knows no float64.
NUMBERS = [(name, torch.float32, 1e-5) for name in MODELS]
NUMBERS += [(name, torch.float64, 1e-6) for name in MODELS if name != "qwen3 moe"]


@pytest.mark.parametrize(("name", "dtype", "bound"), NUMBERS)
@pytest.mark.parametrize("kind", KINDS)
def test_unmodified_models(name: str, dtype: torch.dtype, bound: float, kind: str) -> None:
    """Norms and rotations compute in float32 in all of them, whatever the dtype."""
    causal, some = model(name, dtype), texts(kind, 0)
    pull = torch.randn(sum(map(len, some)), VOCAB, dtype=dtype)
    apiece = gradient(causal, some, pull, merge=False, most=10**6)
    for most in (6, 25, 10**6):
        packed = gradient(causal, some, pull, merge=True, most=most)
        assert float((packed - apiece).norm() / apiece.norm()) < bound


@pytest.mark.parametrize("kind", ["agents", "spine"])
@pytest.mark.filterwarnings("ignore:updates take longer")
@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler(kind: str) -> None:
    causal, some = model("llama"), texts(kind, 0)
    pull = torch.randn(sum(map(len, some)), VOCAB, dtype=torch.float64)
    apiece = gradient(causal, some, pull, merge=False, most=10**6)
    for most in (6, 25, 10**6):
        packed = gradient(causal, some, pull, merge=True, most=most)
        assert float((packed - apiece).norm() / apiece.norm()) < 1e-6


@pytest.mark.parametrize("trained", ["layers.1.mlp", "layers.1.self_attn.q_proj", "layers.1.self_attn.k_proj", "norm"])
def test_some_weights_alone(trained: str) -> None:
    """Some layers get no gradient of their keys."""
    causal, some = CausalModel(copy.deepcopy(model("llama").model)), texts("agents", 0)
    for name, weight in causal.model.named_parameters():
        weight.requires_grad_(trained in name)
    pull = torch.randn(sum(map(len, some)), VOCAB, dtype=torch.float64)
    apiece = gradient(causal, some, pull, merge=False, most=10**6)
    packed = gradient(causal, some, pull, merge=True, most=6)
    assert float((packed - apiece).norm() / apiece.norm()) < 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_the_last_layer_works_on_what_predicts_alone(name: str) -> None:
    dtype, bound = (torch.float32, 1e-5) if name == "qwen3 moe" else (torch.float64, 1e-6)
    causal, some = model(name, dtype), texts("agents", 3)
    assert causal.skips_last_layer
    pull = torch.randn(sum(map(len, some)), VOCAB, dtype=dtype)
    worked: list[int] = []
    last = causal.model.base_model.layers[-1].mlp
    watch = last.register_forward_hook(lambda _, given, __: worked.append(given[0].shape[1]))
    try:
        for most in (6, 10**6):
            narrow = gradient(causal, some, pull, merge=True, most=most, every=7)
            few = sum(worked)
            causal.skips_last_layer = False
            whole = gradient(causal, some, pull, merge=True, most=most, every=7)
            causal.skips_last_layer = True
            assert 2 * few < sum(worked) - few
            worked.clear()
            assert float((narrow - whole).norm() / whole.norm()) < bound
    finally:
        watch.remove()
        causal.skips_last_layer = True


def test_a_last_layer_that_wants_all_tokens_gets_them() -> None:
    class Counting(LlamaDecoderLayer):
        """As a layer would that keeps something of its own for every token."""

        def forward(self, hidden_states: Tensor, *told: Any, **named: Any) -> Any:
            if hidden_states.shape[1] < 8:
                raise RuntimeError("got fewer tokens than there are")
            return super().forward(hidden_states, *told, **named)

    plain = AutoModelForCausalLM.from_config(MODELS["llama"], dtype=torch.float64)
    odd = copy.deepcopy(plain)
    odd.model.layers[-1].__class__ = Counting
    causal, whole = CausalModel(odd), CausalModel(plain)
    check_architecture(causal)
    assert not causal.skips_last_layer
    read, wanted = torch.arange(9), torch.as_tensor([3, 8])
    some = causal.hidden(read, read, attend_causally, wanted)
    assert torch.equal(some, whole.hidden(read, read, attend_causally)[wanted])


@given(st.sampled_from(KINDS), st.integers(0, 10**6), st.integers(1, 70), st.integers(1, 9))
@settings(max_examples=12)
def test_any_packed_tree_in_any_chunks(kind: str, seed: int, most: int, every: int) -> None:
    some = texts(kind, seed)
    apiece = hidden(model("llama"), some, merge=False, most=10**6)
    assert float((hidden(model("llama"), some, merge=True, most=most) - apiece).norm() / apiece.norm()) < 1e-6
    pull = torch.randn(len(apiece), VOCAB, dtype=torch.float64)
    plain = gradient(model("llama"), some, pull, merge=False, most=10**6, every=every)
    packed = gradient(model("llama"), some, pull, merge=True, most=most, every=every)
    assert float((packed - plain).norm() / plain.norm()) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_activations_computed_again_change_nothing(kind: str) -> None:
    causal, some = model("llama"), texts(kind, 1)
    pull = torch.randn(sum(map(len, some)), VOCAB, dtype=torch.float64)
    plain = gradient(causal, some, pull, merge=True, most=9)
    causal.recompute(True)
    try:
        again = gradient(causal, some, pull, merge=True, most=9)
    finally:
        causal.recompute(False)
    assert float((again - plain).norm() / plain.norm()) < 1e-14


def test_what_a_sibling_says_does_not_matter_bit_for_bit() -> None:
    causal = model("llama", torch.float32)
    some = [np.asarray([1, 2, 3, *branch]) for branch in ([4, 5, 6], [7, 8, 9, 10, 11], [12, 13, 14])]
    before = hidden(causal, some, merge=True, most=100)
    some[1] = np.asarray([1, 2, 3, 20, 21, 22, 23, 24])
    after = hidden(causal, some, merge=True, most=100)
    assert torch.equal(before[:6], after[:6])
    assert torch.equal(before[14:], after[14:])
    assert not torch.equal(before[9:14], after[9:14])


def test_every_token_is_read_once_and_the_path_to_a_cut_twice() -> None:
    causal, some = model("llama"), texts("agents", 2)
    tree = packed(some, merge=True)
    read: list[int] = []

    def counted(
        tokens: Tensor, positions: Tensor, attend: Attend, wanted: Tensor | None, last: Attend | None
    ) -> Tensor:
        read.append(len(tokens))
        return causal.hidden(tokens, positions, attend, wanted, last)

    for page in ChunkedForward(counted, tree, 10).backward():
        page.hidden.sum().backward()
    chunks = tree.chunks(10)
    again = len(np.unique(np.concatenate([each.past for each in chunks])))
    assert sum(read) == len(tree) + again
    assert max(read) <= 10
    assert 0 < again < len(tree) / 2
