"""Norms in machine code against those of transformers."""

import copy

import pytest
import torch
from torch import Tensor, nn
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from bough.policy.fused import fuse
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


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("width", [32, 7])
def test_sums_are_normed_as_they_are_made(two: bool, heard: bool, width: int) -> None:
    """Also where there is no code for a width, and where somebody listens to the norm."""
    fused, plain = pair(Qwen3RMSNorm, width)
    norm, found = Norm.of(fused), list[Tensor]()
    assert norm is not None
    if heard:
        fused.register_forward_hook(lambda _module, _given, said: found.append(said))
    hidden, more, *pulls = torch.randn(4, 1, 150, width)
    given = (hidden.requires_grad_(), more.requires_grad_())[: 1 + two]
    both = hidden + more if two else hidden
    for wanted in ([0, 1], [0], [1]):  # of what is said, what a gradient comes back to
        ours, theirs = norm.beside(*given), (plain(both), both)
        learned, truth = (
            torch.autograd.grad([said[at] for at in wanted], given, [pulls[at] for at in wanted], retain_graph=True)
            for said in (ours, theirs)
        )
        for one, other in zip((*ours, *learned), (*theirs, *truth), strict=True):
            assert (one - other).norm() <= 1e-6 * other.norm()
    assert len(found) == 3 * heard


class OtherRMSNorm(Qwen3RMSNorm):
    """Computes something else."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        return super().forward(hidden_states) + 0.1


def test_another_norm_is_left_alone() -> None:
    norm = OtherRMSNorm(32)
    fuse(norm, Norm)
    assert "forward" not in vars(norm)
