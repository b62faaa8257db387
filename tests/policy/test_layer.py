"""Layers whose sums and norms are one piece, against those of transformers."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import Gemma3TextConfig, LlamaConfig, PreTrainedConfig, Qwen2Config, Qwen3Config, Qwen3MoeConfig
from transformers.models.gemma3.modeling_gemma3 import Gemma3DecoderLayer
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeDecoderLayer

from bough.policy.attention import ATTENTION, Asked, causal
from bough.policy.fused import fuse
from bough.policy.layer import Layer

Make = Callable[..., nn.Module]
SIZES = {"hidden_size": 48, "intermediate_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
KINDS: list[tuple[Make, type[PreTrainedConfig]]] = [
    (LlamaDecoderLayer, LlamaConfig),
    (Qwen2DecoderLayer, Qwen2Config),
    (Qwen3DecoderLayer, Qwen3Config),
]


def pair(make: Make = Qwen3DecoderLayer, config: type[PreTrainedConfig] = Qwen3Config) -> tuple[nn.Module, nn.Module]:
    """A layer in one piece, and the same as transformers has it."""
    torch.manual_seed(0)
    told = config(**SIZES)
    told._attn_implementation = ATTENTION
    layer = make(told, layer_idx=0).eval()
    for weight in layer.parameters():
        nn.init.normal_(weight, 0.2, 0.3)
    fused = copy.deepcopy(layer)
    fuse(fused, Layer)
    return fused, layer


def slopes(layer: nn.Module, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    chance = torch.Generator().manual_seed(1)
    hidden, pull = torch.randn(2, 1, 30, 48, generator=chance).to(dtype)
    cos, sin = torch.randn(2, 1, 30, 16, generator=chance).to(dtype)
    out: Any = layer(hidden.requires_grad_(), position_embeddings=(cos, sin), attention_mask=None, bough=Asked(causal))
    return [out, *torch.autograd.grad(out, (hidden, *layer.parameters()), pull)]


@pytest.mark.parametrize(("make", "config"), KINDS)
def test_layers_say_what_transformers_says(make: Make, config: type[PreTrainedConfig]) -> None:
    fused, layer = pair(make, config)
    assert isinstance(vars(fused)["forward"], Layer)
    for one, other in zip(slopes(fused), slopes(layer), strict=True):
        assert (one - other).norm() <= 2e-5 * other.norm()


def test_other_numbers_are_normed_as_transformers_does() -> None:
    fused, layer = (each.double() for each in pair())
    assert all(map(torch.equal, slopes(fused, torch.float64), slopes(layer, torch.float64)))


def test_activations_may_be_computed_again() -> None:
    fused, _ = pair()
    before, runs = slopes(fused), list[None]()
    layer: Any = fused
    layer.self_attn.register_forward_hook(lambda *_: runs.append(None))
    layer.gradient_checkpointing, layer.training = True, True
    layer._gradient_checkpointing_func = lambda run, *given: torch.utils.checkpoint.checkpoint(
        run, *given, use_reentrant=False
    )
    for one, other in zip(slopes(fused), before, strict=True):
        assert (one - other).norm() <= 2e-5 * other.norm()
    assert len(runs) == 2


class ScaledLayer(Qwen3DecoderLayer):
    """Adds less."""

    def forward(self, hidden_states: Tensor, **named: Any) -> Tensor:
        return super().forward(0.5 * hidden_states, **named)


class SilentLayer(Qwen3DecoderLayer):
    """Does not tell its attention everything."""

    def forward(self, hidden_states: Tensor, **named: Any) -> Tensor:
        return super().forward(hidden_states, **{**named, "bough": None})


class LoudLayer(Qwen3DecoderLayer):
    """Tells its attention more."""

    def forward(self, hidden_states: Tensor, **named: Any) -> Tensor:
        return super().forward(hidden_states, **{**named, "loud": True})


@pytest.mark.parametrize(
    ("make", "config"),
    [
        (ScaledLayer, Qwen3Config),
        (SilentLayer, Qwen3Config),
        (LoudLayer, Qwen3Config),
        (Gemma3DecoderLayer, Gemma3TextConfig),
        (Qwen3MoeDecoderLayer, Qwen3MoeConfig),
    ],
)
def test_another_layer_is_left_alone(make: Make, config: type[PreTrainedConfig]) -> None:
    assert "forward" not in vars(pair(make, config)[0])
