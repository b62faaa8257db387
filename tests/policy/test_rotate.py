"""Rotations in machine code against those of transformers."""

import pytest
import torch
from torch import Tensor, nn
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm, apply_rotary_pos_emb

from bough.policy.norm import Norm
from bough.policy.rotate import norm_and_turn, rotate, turn, turn_and_norm_back, turns

Four = tuple[Tensor, Tensor, Tensor, Tensor]


def heads(tokens: int = 70, width: int = 32, counts: tuple[int, int] = (6, 2)) -> Four:
    """Queries and keys as a layer has them, token by token in memory, and angles that differ in all numbers."""
    torch.manual_seed(0)
    query, key = (torch.randn(tokens, many, width).transpose(0, 1) for many in counts)
    cos, sin = torch.randn(2, 1, tokens, width)
    return query, key, cos, sin


def theirs(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    turned = apply_rotary_pos_emb(query[None], key[None], cos, sin)
    return turned[0][0], turned[1][0]


def slopes(given: Four, by: object = rotate) -> list[Tensor]:
    assert callable(by)
    query, key = (each.detach().requires_grad_() for each in given[:2])
    turned = by(query, key, *given[2:])
    pulls = [torch.randn(each.shape, generator=torch.Generator().manual_seed(1)) for each in turned]
    return [*turned, *torch.autograd.grad(turned, (query, key), pulls)]


@pytest.mark.parametrize("width", [16, 24, 32, 128])
@pytest.mark.parametrize("counts", [(1, 1), (6, 2)])
def test_rotations_say_what_transformers_says(width: int, counts: tuple[int, int]) -> None:
    given = heads(width=width, counts=counts)
    for one, other in zip(slopes(given), slopes(given, theirs), strict=True):
        assert (one - other).norm() <= 1e-6 * other.norm()
    assert all(torch.equal(*pair) for pair in zip(turn(*given), slopes(given)[:2], strict=True))


@pytest.mark.parametrize("kind", [Qwen3RMSNorm, Gemma3RMSNorm])
@pytest.mark.parametrize("width", [16, 24, 128])
def test_heads_are_normed_on_the_way(kind: type[nn.Module], width: int) -> None:
    query, key, cos, sin = heads(tokens=150, width=width)
    modules = [kind(width), kind(width)]
    norms = [Norm.of(module) for module in modules]
    assert norms[0] is not None
    assert norms[1] is not None
    weights = [nn.init.normal_(norm.weight, 1.0, 0.3) for norm in norms if norm is not None]
    query.requires_grad_()
    key.requires_grad_()
    truth = theirs(modules[0](query), modules[1](key), cos, sin)
    pulls = (torch.randn(truth[0].shape), torch.randn(truth[1].shape))
    given, of = (query.detach(), key.detach()), [norms[0], norms[1]]
    turned, scales = norm_and_turn(given, weights, of, cos, sin)
    back, to_weights = turn_and_norm_back(pulls, given, scales, weights, of, cos, sin)
    learned = torch.autograd.grad(truth, (query, key, *weights), pulls)
    for one, other in zip((*turned, *back, *to_weights), (*truth, *learned), strict=True):
        assert (one - other).norm() <= 2e-6 * other.norm()


def test_heads_may_turn_where_they_are() -> None:
    given = heads()
    turned = turn(*given)
    there = turn(*given, in_place=True)
    assert all(torch.equal(*pair) for pair in zip(turned, there, strict=True))
    assert [each.data_ptr() for each in there] == [each.data_ptr() for each in given[:2]]


def test_heads_that_lie_in_another_way() -> None:
    query, key, cos, sin = heads()
    others = (query.contiguous(), key.transpose(1, 2).contiguous().transpose(1, 2), cos, sin)
    assert all(torch.equal(*pair) for pair in zip(slopes(others), slopes((query, key, cos, sin)), strict=True))


def test_one_of_both_alone_has_a_gradient() -> None:
    query, key, cos, sin = heads()
    query.requires_grad_()
    found, truth = (
        torch.autograd.grad(by(query, key, cos, sin)[0].sum(), query)[0]  # one at a time
        for by in (rotate, theirs)
    )
    assert torch.allclose(found, truth, atol=1e-5)


def test_rotations_say_the_same_however_many_threads() -> None:
    given = heads(tokens=700)
    alone = slopes(given)
    torch.set_num_threads(3)
    together = slopes(given)
    torch.set_num_threads(1)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


def test_there_is_code_for_most_widths() -> None:
    assert [turns(width) for width in (32, 24, 20, 7)] == [True, True, False, False]


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_there_is_none() -> None:
    assert not turns(32)
