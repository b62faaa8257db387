"""Rotations in machine code against those of transformers."""

import copy
import pickle
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.models.cohere import modeling_cohere
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.phi3.modeling_phi3 import apply_rotary_pos_emb as in_part
from transformers.models.qwen3.modeling_qwen3 import apply_rotary_pos_emb as whole

from bough.policy import Tiny
from bough.policy.fused import fuse
from bough.policy.rotate import Rotated, rotate

Four = tuple[Tensor, Tensor, Tensor, Tensor]


def never(*args: object, **settings: object) -> tuple[Tensor, Tensor]:
    raise AssertionError(f"got {len(args)} tensors and {settings}; need the code")


def heads(
    tokens: int = 70, width: int = 32, counts: tuple[int, int] = (6, 2), dtype: torch.dtype = torch.float32
) -> Four:
    """Queries and keys as a layer has them, token by token in memory, and angles that differ in all numbers."""
    torch.manual_seed(0)
    query, key = (torch.randn(1, tokens, many, width, dtype=dtype).transpose(1, 2) for many in counts)
    cos, sin = torch.randn(2, 1, tokens, width, dtype=dtype)
    return query, key, cos, sin


def slopes(given: Four, own: Any = None) -> list[Tensor]:
    query, key = (each.detach().requires_grad_() for each in given[:2])
    turned = rotate(never, query, key, *given[2:]) if own is None else own(query, key, *given[2:])
    pulls = [torch.randn(each.shape, generator=torch.Generator().manual_seed(1)) for each in turned]
    return [*turned, *torch.autograd.grad(turned, (query, key), pulls)]


@pytest.mark.parametrize("width", [16, 24, 32, 128])
@pytest.mark.parametrize("counts", [(1, 1), (6, 2)])
def test_rotations_say_what_transformers_says(width: int, counts: tuple[int, int]) -> None:
    given = heads(width=width, counts=counts)
    for one, other in zip(slopes(given), slopes(given, whole), strict=True):
        assert (one - other).norm() <= 1e-6 * other.norm()
    assert all(torch.equal(*pair) for pair in zip(rotate(never, *given), slopes(given)[:2], strict=True))


def test_heads_that_lie_in_another_way() -> None:
    query, key, cos, sin = heads()
    others = (query.contiguous(), key.transpose(2, 3).contiguous().transpose(2, 3), cos, sin)
    assert all(torch.equal(*pair) for pair in zip(slopes(others), slopes((query, key, cos, sin)), strict=True))


def test_one_of_both_alone_has_a_gradient() -> None:
    query, key, cos, sin = heads()
    query.requires_grad_()
    turned, _ = rotate(never, query, key, cos, sin)
    assert torch.allclose(torch.autograd.grad(turned.sum(), query)[0], slopes_of_ones(query, cos, sin), atol=1e-5)


def slopes_of_ones(query: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.autograd.grad(whole(query, query.detach(), cos, sin)[0].sum(), query)[0]


def test_rotations_say_the_same_however_many_threads() -> None:
    given = heads(tokens=700)
    alone = slopes(given)
    torch.set_num_threads(3)
    together = slopes(given)
    torch.set_num_threads(1)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_numbers_are_the_functions_own_business(dtype: torch.dtype) -> None:
    given = heads(dtype=dtype)
    assert all(torch.equal(*pair) for pair in zip(rotate(whole, *given), whole(*given), strict=True))


def test_heads_that_turn_in_part_are_the_functions_own_business() -> None:
    query, key, cos, sin = heads()
    given = (query, key, cos[..., :16].contiguous(), sin[..., :16].contiguous())
    assert all(torch.equal(*pair) for pair in zip(rotate(in_part, *given), in_part(*given), strict=True))


@pytest.mark.parametrize("module", [modeling_cohere, modeling_gpt_oss])
def test_another_function_is_left_alone(module: ModuleType) -> None:
    """One that turns neighbours, and one that is told half of the angles."""
    kind = next(each for name, each in vars(module).items() if name.endswith("Attention"))
    assert Rotated.of(kind.__new__(kind)) is None


def test_a_layer_without_rotations_is_left_alone() -> None:
    layer = nn.Linear(2, 2)
    fuse(layer, Rotated)
    assert "forward" not in vars(layer)


def test_a_copy_goes_on_with_weights_of_its_own() -> None:
    model = Tiny(width=32, device="cpu").build(["a b c"])._causal.model
    layer = next(module for module in model.modules() if isinstance(vars(module).get("forward"), Rotated))
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        fused = vars(again)["forward"]
        assert isinstance(fused, Rotated)
        assert fused._module is again


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_rotations_are_as_they_were() -> None:
    given = heads()
    assert all(torch.equal(*pair) for pair in zip(rotate(whole, *given), whole(*given), strict=True))
