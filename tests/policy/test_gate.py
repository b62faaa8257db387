"""Gated activations in machine code against those of transformers."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import Gemma3TextConfig, LlamaConfig, Qwen3Config
from transformers.models.gemma3.modeling_gemma3 import Gemma3MLP
from transformers.models.llama.modeling_llama import LlamaMLP
from transformers.models.qwen3.modeling_qwen3 import Qwen3MLP

from bough.policy.fused import fuse
from bough.policy.gate import Gate


def blocks(inner: int = 48, kind: type[nn.Module] = Qwen3MLP, **settings: Any) -> tuple[nn.Module, nn.Module]:
    """A feed-forward block in machine code, and the same as transformers has it."""
    torch.manual_seed(0)
    config = LlamaConfig if kind is LlamaMLP else Qwen3Config
    plain = kind(config(hidden_size=32, intermediate_size=inner, **settings))
    fused = copy.deepcopy(plain)
    fuse(fused, Gate)
    return fused, plain


def slopes(block: nn.Module, hidden: Tensor, pull: Tensor) -> list[Tensor]:
    hidden = hidden.detach().requires_grad_()
    out = block(hidden)
    trained = [weight for weight in block.parameters() if weight.requires_grad]
    return [out, *torch.autograd.grad(out, (hidden, *trained), pull)]


@pytest.mark.parametrize(("kind", "settings"), [(Qwen3MLP, {}), (LlamaMLP, {"mlp_bias": True})])
@pytest.mark.parametrize("inner", [48, 40, 36])
def test_gates_say_what_transformers_says(kind: type[nn.Module], settings: dict[str, Any], inner: int) -> None:
    fused, plain = blocks(inner, kind, **settings)
    assert isinstance(vars(fused)["forward"], Gate)
    hidden, pull = 30 * torch.randn(1, 301, 32), torch.randn(1, 301, 32)
    for one, other in zip(slopes(fused, hidden, pull), slopes(plain, hidden, pull), strict=True):
        assert (one - other).norm() <= 1e-6 * other.norm()
    learned = slopes(fused, hidden, pull)[0]
    with torch.no_grad():
        assert torch.equal(fused(hidden), learned)


def test_gates_where_they_are_shut_and_wide_open() -> None:
    """The exponential neither overflows nor turns into something that is no number."""
    fused, plain = blocks(16)
    for block in (fused, plain):
        block.get_submodule("gate_proj").weight = nn.Parameter(torch.eye(16, 32))
    numbers = torch.tensor([-200.0, -89.0, -87.0, -20.0, -1e-30, 0.0, 1e-30, 20.0, 87.0, 89.0, 200.0, 3e38])
    hidden, pull = torch.zeros(1, len(numbers), 32), torch.ones(1, len(numbers), 32)
    hidden[0, :, :16] = numbers[:, None]
    hidden[0, :, 16:] = 1e-3
    for one, other in zip(slopes(fused, hidden, pull)[:2], slopes(plain, hidden, pull)[:2], strict=True):
        assert torch.allclose(one[:, :-1], other[:, :-1], rtol=1e-5, atol=1e-6)
        assert torch.equal(one[:, -1].isfinite(), other[:, -1].isfinite())


class SwappedMLP(Qwen3MLP):
    """Gates the other half."""

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.up_proj(x)) * self.gate_proj(x))


class PeekingMLP(Qwen3MLP):
    """Asks for more than products of its matrices."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x * self.down_proj.weight.sum())


@pytest.mark.parametrize("kind", [SwappedMLP, PeekingMLP])
def test_another_block_is_left_alone(kind: type[nn.Module]) -> None:
    assert "forward" not in vars(blocks(kind=kind)[0])


def test_another_activation_is_left_alone() -> None:
    block = Gemma3MLP(Gemma3TextConfig(hidden_size=32, intermediate_size=48))
    fuse(block, Gate)
    assert "forward" not in vars(block)


@pytest.mark.parametrize("frozen", [("gate_proj",), ("up_proj", "down_proj"), ("gate_proj", "up_proj", "down_proj")])
def test_some_weights_alone_are_trained(frozen: tuple[str, ...]) -> None:
    fused, plain = blocks()
    for block in (fused, plain):
        for name in frozen:
            block.get_submodule(name).requires_grad_(False)
    hidden, pull = torch.randn(1, 9, 32), torch.randn(1, 9, 32)
    for one, other in zip(slopes(fused, hidden, pull), slopes(plain, hidden, pull), strict=True):
        assert (one - other).norm() <= 1e-6 * other.norm()


@pytest.mark.parametrize("name", ["gate_proj", "down_proj"])
def test_whoever_listens_to_a_product_is_told(name: str) -> None:
    fused, plain = blocks()
    heard: list[Tensor] = []
    fused.get_submodule(name).register_forward_hook(lambda _module, _given, said: heard.append(said))
    hidden = torch.randn(1, 9, 32)
    assert torch.allclose(fused(hidden), plain(hidden), rtol=1e-5, atol=1e-6)
    assert len(heard) == 1


def test_adapters_are_asked_too() -> None:
    fused, plain = blocks()
    for block in (fused, plain):
        torch.manual_seed(1)
        block.set_submodule("gate_proj", nn.Sequential(block.get_submodule("gate_proj"), nn.Linear(48, 48)))
    hidden = torch.randn(1, 5, 32)
    assert torch.allclose(fused(hidden), plain(hidden), rtol=1e-5, atol=1e-6)
