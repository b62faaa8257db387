"""Norms in machine code against those of transformers."""

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from bough.policy import Tiny
from bough.policy.fused import fuse, part
from bough.policy.norm import Norm


def pair(kind: type[nn.Module], width: int = 32) -> tuple[nn.Module, nn.Module]:
    """A norm in machine code, and the same as transformers has it."""
    torch.manual_seed(0)
    fused = kind(width)
    nn.init.normal_(fused.weight, 1.0, 0.3)  # pyright: ignore[reportArgumentType]
    plain = copy.deepcopy(fused)
    fuse(fused, Norm)
    return fused, plain


def slopes(norm: nn.Module, hidden: Tensor, pull: Tensor) -> list[Tensor]:
    hidden = hidden.detach().requires_grad_()
    out = norm(hidden)
    return [out, *torch.autograd.grad(out, (hidden, norm.weight), pull)]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("kind", [Qwen3RMSNorm, Gemma3RMSNorm])
@pytest.mark.parametrize("shape", [(1, 3, 32), (1, 301, 32), (1, 7, 4, 20), (2, 5, 256)])
def test_norms_say_what_transformers_says(kind: type[nn.Module], shape: tuple[int, ...]) -> None:
    fused, plain = pair(kind, shape[-1])
    assert isinstance(vars(fused)["forward"], Norm)
    hidden, pull = 3 * torch.randn(shape), torch.randn(shape)
    for one, other in zip(slopes(fused, hidden, pull), slopes(plain, hidden, pull), strict=True):
        assert (one - other).norm() <= 1e-6 * other.norm()
    learned = slopes(fused, hidden, pull)[0]
    with torch.no_grad():
        assert torch.equal(fused(hidden), learned)


def test_rows_that_do_not_lie_end_to_end() -> None:
    fused, plain = pair(Qwen3RMSNorm)
    hidden, pull = torch.randn(1, 32, 9).transpose(1, 2), torch.randn(1, 32, 9).transpose(1, 2)
    for one, other in zip(slopes(fused, hidden, pull), slopes(plain, hidden, pull), strict=True):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-5)


def test_norms_say_the_same_however_many_threads() -> None:
    fused, _ = pair(Qwen3RMSNorm)
    hidden, pull = torch.randn(1, 700, 32), torch.randn(1, 700, 32)
    alone = slopes(fused, hidden, pull)
    torch.set_num_threads(3)
    together = slopes(fused, hidden, pull)
    torch.set_num_threads(1)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_numbers_are_the_norms_own_business(dtype: torch.dtype) -> None:
    fused, plain = pair(Qwen3RMSNorm)
    hidden = torch.randn(1, 5, 32, dtype=dtype)
    assert torch.equal(fused.to(dtype)(hidden), plain.to(dtype)(hidden))


class OtherRMSNorm(Qwen3RMSNorm):
    """Computes something else."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states) + 0.1


def test_another_norm_is_left_alone() -> None:
    norm = OtherRMSNorm(32)
    fuse(norm, Norm)
    assert "forward" not in vars(norm)


def test_a_copy_has_weights_of_its_own() -> None:
    fused, _ = pair(Qwen3RMSNorm)
    hidden = torch.randn(1, 3, 32)
    before = fused(hidden)
    for again in (copy.deepcopy(fused), pickle.loads(pickle.dumps(fused))):
        assert isinstance(vars(again)["forward"], Norm)
        assert torch.equal(again(hidden), before)
        again.weight.data.zero_()
        assert torch.equal(again(hidden), torch.zeros_like(hidden))
    assert torch.equal(fused(hidden), before)


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_norms_are_as_they_were() -> None:
    fused, plain = pair(Qwen3RMSNorm)
    hidden = torch.randn(1, 3, 32)
    assert torch.equal(fused(hidden), plain(hidden))


def test_a_model_has_its_norms_in_machine_code_until_it_is_compiled() -> None:
    model = Tiny(width=32, device="cpu").build(["a b c"])._causal.model
    norms = [module for module in model.modules() if type(module).__name__.endswith("RMSNorm")]
    assert norms
    assert all(isinstance(vars(norm)["forward"], Norm) for norm in norms)
    part(model)
    assert not any("forward" in vars(norm) for norm in norms)
