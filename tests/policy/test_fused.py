"""Modules in machine code against the same as transformers has them, whatever they are."""

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn
from transformers import Qwen3Config
from transformers.models.qwen3.modeling_qwen3 import Qwen3MLP, Qwen3RMSNorm

from bough.policy import Tiny
from bough.policy.attention import causal
from bough.policy.fused import Fused, fuse, part
from bough.policy.gate import Gate
from bough.policy.layer import Layer
from bough.policy.norm import Norm
from bough.policy.product import Matrix
from bough.policy.project import Projected

KINDS = [Norm, Gate]


def pair(kind: type[Fused]) -> tuple[nn.Module, nn.Module]:
    """A module of width 32 in machine code, and plain."""
    torch.manual_seed(0)
    plain = Qwen3RMSNorm(32) if kind is Norm else Qwen3MLP(Qwen3Config(hidden_size=32, intermediate_size=48))
    fused = copy.deepcopy(plain)
    fuse(fused, *KINDS)
    assert isinstance(vars(fused)["forward"], kind)
    return fused, plain


def slopes(module: nn.Module, hidden: Tensor) -> list[Tensor]:
    hidden = hidden.detach().requires_grad_()
    out = module(hidden)
    return [out, torch.autograd.grad((out * out.detach().roll(1)).sum(), hidden)[0]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_however_many_threads(kind: type[Fused]) -> None:
    fused, _ = pair(kind)
    hidden = torch.randn(1, 3000, 32)
    alone = slopes(fused, hidden)
    torch.set_num_threads(3)
    together = slopes(fused, hidden)
    torch.set_num_threads(1)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_other_numbers_are_the_modules_own_business(kind: type[Fused], dtype: torch.dtype) -> None:
    fused, plain = pair(kind)
    hidden = torch.randn(1, 5, 32, dtype=dtype)
    assert torch.equal(fused.to(dtype)(hidden), plain.to(dtype)(hidden))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_all_is_as_it_was(kind: type[Fused]) -> None:
    fused, plain = pair(kind)
    hidden = torch.randn(1, 3, 32)
    assert torch.equal(fused(hidden), plain(hidden))


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_has_weights_of_its_own(kind: type[Fused]) -> None:
    fused, _ = pair(kind)
    hidden = torch.randn(1, 3, 32)
    before = fused(hidden)
    for again in (copy.deepcopy(fused), pickle.loads(pickle.dumps(fused))):
        assert isinstance(vars(again)["forward"], kind)
        assert torch.equal(again(hidden), before)
        for weight in again.parameters():
            weight.data.zero_()
        assert torch.equal(again(hidden), torch.zeros_like(hidden))
    assert torch.equal(fused(hidden), before)


def test_a_model_that_is_not_on_a_cpu_is_left_alone() -> None:
    with torch.device("meta"):
        norm = Qwen3RMSNorm(32)
    fuse(norm, Norm)
    assert "forward" not in vars(norm)


def test_a_model_says_the_same_with_and_without_code() -> None:
    """All of it: norms, gates, what comes before attention, and what is around."""
    policy = Tiny(width=32, device="cpu").build(["a b c"])
    model = policy._causal.model
    kinds = {type(vars(module)["forward"]) for module in model.modules() if "forward" in vars(module)}
    assert kinds - {Matrix} == {Norm, Gate, Projected, Layer}  # which not all processors want
    tokens, places, pull = torch.randint(3, 8, (9,)), torch.arange(9), torch.randn(9, 32)

    def told() -> list[Tensor]:
        hidden = policy._causal.hidden(tokens, places, causal)
        return [hidden, *torch.autograd.grad((hidden * pull).sum(), list(model.parameters()))]

    by_code = told()
    part(model)
    assert not any(isinstance(vars(module).get("forward"), Fused) for module in model.modules())
    for one, other in zip(by_code, told(), strict=True):
        assert (one - other).norm() <= 1e-5 * other.norm()
