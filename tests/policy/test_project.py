"""Attention layers whose queries, keys and values are made in one piece, against those of transformers."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import Gemma3TextConfig, LlamaConfig, PreTrainedConfig, Qwen2Config, Qwen3Config, Qwen3MoeConfig
from transformers.models.cohere.modeling_cohere import CohereAttention, CohereConfig
from transformers.models.gemma3.modeling_gemma3 import Gemma3Attention
from transformers.models.glm.modeling_glm import GlmAttention, GlmConfig
from transformers.models.llama.modeling_llama import LlamaAttention
from transformers.models.olmo2.modeling_olmo2 import Olmo2Attention, Olmo2Config
from transformers.models.qwen2.modeling_qwen2 import Qwen2Attention
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeAttention
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention, Qwen3NextConfig

from bough.policy.attention import ATTENTION, Asked, causal
from bough.policy.fused import fuse
from bough.policy.project import Projected

Kind = tuple[Callable[..., nn.Module], type[PreTrainedConfig], dict[str, Any]]

KINDS: dict[str, Kind] = {
    "llama": (LlamaAttention, LlamaConfig, {}),
    "llama with biases": (LlamaAttention, LlamaConfig, {"attention_bias": True}),
    "qwen2": (Qwen2Attention, Qwen2Config, {}),
    "qwen3": (Qwen3Attention, Qwen3Config, {}),
    "qwen3 moe": (Qwen3MoeAttention, Qwen3MoeConfig, {}),
    "gemma3": (Gemma3Attention, Gemma3TextConfig, {"sliding_window": 5, "query_pre_attn_scalar": 7}),
}
SIZES = {"hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}


def plain(kind: Kind, **settings: Any) -> nn.Module:
    """A layer as transformers has it, with weights that are all different."""
    make, config, own = kind
    torch.manual_seed(0)
    told = config(**SIZES, **own, **settings)
    told._attn_implementation = ATTENTION
    layer = make(told, layer_idx=1).eval()
    for weight in layer.parameters():
        nn.init.normal_(weight, 0.5, 0.3)
    return layer


def pair(name: str = "qwen3") -> tuple[nn.Module, nn.Module]:
    """A layer in one piece, and the same as transformers has it."""
    layer = plain(KINDS[name])
    fused = copy.deepcopy(layer)
    fuse(fused, Projected)
    assert isinstance(vars(fused)["forward"], Projected)
    return fused, layer


def told(tokens: int = 70, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """What a layer is told."""
    chance = torch.Generator().manual_seed(1)
    hidden = torch.randn(1, tokens, 48, generator=chance).to(dtype)
    cos, sin = torch.randn(2, 1, tokens, 16, generator=chance).to(dtype)
    return {"hidden_states": hidden, "position_embeddings": (cos, sin), "attention_mask": None, "use_cache": False}


def slopes(layer: nn.Module, given: dict[str, Any] | None = None, asked: Asked | None = None) -> list[Tensor]:
    given = given or told()
    hidden = given["hidden_states"].detach().requires_grad_()
    out, weights = layer(**{**given, "hidden_states": hidden}, bough=asked or Asked(causal))
    assert weights is None
    trained = [hidden, *(weight for weight in layer.parameters() if weight.requires_grad)]
    pull = torch.randn(out.shape, generator=torch.Generator().manual_seed(2)).to(out.dtype)
    return [out, *torch.autograd.grad(out, trained, pull)]


def alike(ones: list[Tensor], others: list[Tensor], rounding: float = 2e-6) -> bool:
    return all((one - other).norm() <= rounding * other.norm() for one, other in zip(ones, others, strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_layers_say_what_transformers_says(name: str) -> None:
    fused, layer = pair(name)
    learned = slopes(fused)
    assert alike(learned, slopes(layer), 2e-5)
    with torch.no_grad():
        assert torch.equal(fused(**told(), bough=Asked(causal))[0], learned[0])


@torch.no_grad()
def asks(layer: nn.Module) -> tuple[tuple[object, ...], tuple[Tensor, ...]]:
    """What a layer hands over: its number, scale and window; and queries, keys and values."""
    found: list[Any] = []

    def attend(
        layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
    ) -> Tensor:
        found.extend(((layer, scale, window), (query, key, value)))
        return query

    layer(**told(), bough=Asked(attend))
    return found[0], found[1]


@pytest.mark.parametrize("name", KINDS)
def test_they_ask_for_attention_as_transformers_does(name: str) -> None:
    (ours, heads), (theirs, others) = map(asks, pair(name))
    assert ours == theirs == (1, 7**-0.5 if name == "gemma3" else 0.25, 5 if name == "gemma3" else None)
    assert alike([*heads], [*others])


@pytest.mark.parametrize("frozen", [("q_proj",), ("k_proj", "v_proj"), ("q_proj", "k_proj", "v_proj", "q_norm")])
def test_some_weights_alone_are_trained(frozen: tuple[str, ...]) -> None:
    fused, layer = pair()
    for each in (fused, layer):
        for name in frozen:
            each.get_submodule(name).requires_grad_(False)
    assert alike(slopes(fused), slopes(layer), 2e-5)


@pytest.mark.parametrize("name", ["q_proj", "v_proj"])
def test_adapters_are_asked_too(name: str) -> None:
    fused, layer = pair()
    for each in (fused, layer):
        torch.manual_seed(3)
        own: Any = each.get_submodule(name)
        each.set_submodule(name, nn.Sequential(own, nn.Linear(own.out_features, own.out_features)))
    assert alike(slopes(fused), slopes(layer), 2e-5)


@pytest.mark.parametrize("name", ["k_proj", "k_norm"])
def test_whoever_listens_to_a_part_is_told(name: str) -> None:
    fused, _ = pair()
    heard: list[Tensor] = []
    fused.get_submodule(name).register_forward_hook(lambda _module, _given, said: heard.append(said))
    learned = slopes(fused)
    assert len(heard) == 1
    assert alike(learned, slopes(pair()[0]))


def test_a_copy_has_weights_of_its_own() -> None:
    fused, _ = pair()
    before = slopes(fused)
    for again in (copy.deepcopy(fused), pickle.loads(pickle.dumps(fused))):
        assert isinstance(vars(again)["forward"], Projected)
        assert alike(slopes(again), before, 0.0)
        for name in ("q_norm", "k_proj"):
            again.get_submodule(name).get_parameter("weight").data.zero_()
        query, key, value = asks(again)[1]
        assert [bool(each.any()) for each in (query, key, value)] == [False, False, True]
    assert alike(slopes(fused), before, 0.0)


def test_attention_that_is_done_is_not_done_again() -> None:
    def never(*given: object, **named: object) -> Tensor:
        raise AssertionError(f"got {len(given)} and {named}; need nobody who asks")

    done = torch.randn(4, 9, 16)
    one, other = (layer(**told(9), bough=Asked(never, attended=done))[0] for layer in pair())
    assert torch.allclose(one, other, atol=1e-6)


def test_the_same_however_many_threads() -> None:
    fused, _ = pair()
    given = told(700)
    alone = slopes(fused, given)
    torch.set_num_threads(3)
    together = slopes(fused, given)
    torch.set_num_threads(1)
    assert alike(alone, together)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_numbers_are_the_layers_own_business(dtype: torch.dtype) -> None:
    fused, layer = (each.to(dtype) for each in pair())
    ones, others = (slopes(each, told(9, dtype)) for each in (fused, layer))
    assert all(torch.equal(*both) for both in zip(ones, others, strict=True))


@pytest.mark.parametrize("more", [{"attention_mask": torch.zeros(1)}, {"is_causal": False}, {"softcap": 3.0}])
def test_what_nobody_does_is_refused_as_ever(more: dict[str, Any]) -> None:
    for layer in pair():
        with pytest.raises(ValueError, match="need causal attention"):
            layer(**{**told(), **more}, bough=Asked(causal))


def test_dropout_is_refused_as_ever() -> None:
    layer = plain(KINDS["qwen3"], attention_dropout=0.1)
    fuse(layer, Projected)
    with pytest.raises(ValueError, match="dropout"):
        layer.train()(**told(), bough=Asked(causal))


@pytest.mark.parametrize(
    "kind",
    [
        (CohereAttention, CohereConfig, {}),  # neighbours turn, not halves
        (GlmAttention, GlmConfig, {}),  # heads turn in part
        (Olmo2Attention, Olmo2Config, {}),  # norms of all heads together
        (Qwen3NextAttention, Qwen3NextConfig, {"partial_rotary_factor": 1.0}),  # what comes back passes gates
    ],
)
def test_another_layer_is_left_alone(kind: Kind) -> None:
    layer = plain(kind)
    fuse(layer, Projected)
    assert "forward" not in vars(layer)


class SwappedAttention(Qwen3Attention):
    """Mixes what others look for."""

    def forward(self, hidden_states: Tensor, *args: Any, **named: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.k_proj, self.v_proj = self.v_proj, self.k_proj
        try:
            return super().forward(hidden_states, *args, **named)
        finally:
            self.k_proj, self.v_proj = self.v_proj, self.k_proj


class PeekingAttention(Qwen3Attention):
    """Asks for more than products of its matrices."""

    def forward(self, hidden_states: Tensor, *args: Any, **named: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().forward(hidden_states + self.k_proj.weight.mean(), *args, **named)


@pytest.mark.parametrize("make", [SwappedAttention, PeekingAttention])
def test_a_layer_that_does_more_is_left_alone(make: Callable[..., nn.Module]) -> None:
    layer = plain((make, Qwen3Config, {}))
    fuse(layer, Projected)
    assert "forward" not in vars(layer)


def test_a_layer_of_another_attention_is_left_alone() -> None:
    layer = plain(KINDS["qwen3"])
    config: Any = layer.config
    config._attn_implementation = "sdpa"
    fuse(layer, Projected)
    assert "forward" not in vars(layer)


def test_nothing_is_drawn_to_find_out() -> None:
    layer = plain(KINDS["qwen3"])
    torch.manual_seed(5)
    before = torch.get_rng_state()
    fuse(layer, Projected)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_all_is_as_it_was() -> None:
    fused, layer = pair()
    assert all(torch.equal(*both) for both in zip(slopes(fused), slopes(layer), strict=True))
