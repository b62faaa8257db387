"""Attention over a chunk, by the kernel and by masks, against scores written out, forward and backward."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bough.batch import PackedPrefixTree
from bough.batch.attention import ChunkAttention, sees
from bough.batch.chunk import Chunk
from bough.batch.kv_store import KVPrefix

CPU = torch.device("cpu")


def chunks_of(seed: int, most: int, texts: int = 9) -> list[Chunk]:
    """Random texts that often begin alike."""
    rng = np.random.default_rng(seed)
    lines = [rng.integers(3, size=rng.integers(1, 14)) for _ in range(texts)]
    after = np.asarray([len(line) for line in lines])
    return PackedPrefixTree.pack(lines, np.arange(texts), after).chunks(most)


def heads(chunk: Chunk, kv_heads: int, dtype: torch.dtype = torch.float64, width: int = 8) -> list[Tensor]:
    """Random queries of 4 heads, keys and values."""
    n, m = len(chunk), len(chunk.past) + len(chunk)
    shapes = [(4, n, width), (kv_heads, m, width), (kv_heads, m, width)]
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def by_mask(chunk: Chunk, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None) -> Tensor:
    key, value = (each.repeat_interleave(len(query) // len(each), dim=0) for each in (key, value))
    scores = (query @ key.mT * scale).masked_fill(~sees(chunk, window, CPU), -torch.inf)
    return scores.softmax(-1) @ value


class Stored(torch.autograd.Function):
    """Attention as a function of all keys and values, those of the past first, wherever these are kept."""

    @staticmethod
    def forward(ctx: Any, chunk: Chunk, scale: float, window: int | None, *given_: Tensor) -> Tensor:
        many = len(chunk.past)
        query, key, value = (each.detach() for each in given_)
        at = np.sort(np.random.default_rng(many).choice(2 * many + 1, many, replace=False))
        kept = [torch.randn(len(each), 2 * many + 1, each.shape[2], dtype=each.dtype) for each in (key, value)]
        for room, each in zip(kept, (key, value), strict=True):
            room[:, at] = each[:, :many]
        ctx.leaves = [query.clone(), key[:, many:].clone(), value[:, many:].clone()]
        ctx.learned = {}
        past = KVPrefix(key=kept[0], value=kept[1], at=at, add_gradient=ctx.learned.__setitem__) if many else None
        with torch.enable_grad():
            leaves = [each.requires_grad_() for each in ctx.leaves]
            ctx.mixed = ChunkAttention(chunk)(*leaves, scale, window, past)
        return ctx.mixed.detach()

    @staticmethod
    def backward(ctx: Any, *pulls: Tensor) -> Any:
        ctx.mixed.backward(pulls[0])
        query, key, value = (each.grad for each in ctx.leaves)
        past = [ctx.learned.get(number, own[:, :0]) for number, own in enumerate((key, value))]
        return None, None, None, query, torch.cat([past[0], key], 1), torch.cat([past[1], value], 1)


def attention(
    chunk: Chunk, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None = None
) -> Tensor:
    """Attention as a run computes it."""
    apply: Any = Stored.apply
    return apply(chunk, scale, window, query, key, value)


def check(chunk: Chunk, given_: list[Tensor], window: int | None) -> None:
    """Attention and its gradients, as a run computes them, against scores written out."""
    ours, theirs = attention(chunk, *given_, 0.3, window), by_mask(chunk, *given_, 0.3, window)
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-13)
    pull = torch.randn_like(ours)
    mine, other = (torch.autograd.grad(each, given_, pull) for each in (ours, theirs))
    assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(mine, other, strict=True))


@pytest.mark.parametrize("window", [None, 1, 3, 100])
@pytest.mark.parametrize("most", [7, 1000])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_whichever_kernel_is_chosen(window: int | None, most: int, kv_heads: int) -> None:
    """Few tokens and many, with and without a window."""
    for texts in (1, 9, 60):
        for chunk in chunks_of(texts, most, texts):
            check(chunk, heads(chunk, kv_heads), window)


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler(window: int | None) -> None:
    with pytest.warns(UserWarning, match=r"updates take .*no C\+\+ compiler \(no-such-compiler\); install"):
        check(chunks_of(0, 1000)[0], heads(chunks_of(0, 1000)[0], 2), window)
    for texts in (1, 9, 60):
        for chunk in chunks_of(texts, 1000, texts) + chunks_of(texts, 7, texts):
            check(chunk, heads(chunk, 2), window)


@given(st.integers(0, 10**6), st.integers(5, 400), st.sampled_from([4, 2, 1]), st.sampled_from([None, 2, 70]))
@settings(max_examples=25)
def test_long_branches(seed: int, most: int, kv_heads: int, window: int | None) -> None:
    """Of more tokens than a tile has rows, or a block keys."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    lines = [rng.integers(2, size=6) for _ in range(4)]
    lines = [np.concatenate([np.repeat(line, rng.integers(1, 60, size=6)), line]) for line in lines]
    for chunk in PackedPrefixTree.pack(lines, np.arange(4), np.asarray([len(line) for line in lines])).chunks(most):
        check(chunk, heads(chunk, kv_heads), window)


def test_machine_code_says_the_same_however_many_threads() -> None:
    torch.manual_seed(0)
    (chunk,) = chunks_of(5, 1000, 60)
    given_ = heads(chunk, 2, torch.float32)
    found: list[tuple[Tensor, ...]] = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        mixed = attention(chunk, *given_, 0.3)
        found.append((mixed, *torch.autograd.grad(mixed.sum(), given_)))
    torch.set_num_threads(1)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("width", [4, 12, 20, 48, 80, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_machine_code_for_any_width(width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    (chunk,) = chunks_of(3, 1000, 30)
    given_ = heads(chunk, 2, dtype, width)
    ours, theirs = attention(chunk, *given_, 0.3), by_mask(chunk, *given_, 0.3, None)
    pull = torch.randn_like(ours)
    mine, other = (torch.autograd.grad(each, given_, pull) for each in (ours, theirs))
    for one, truth in zip((ours, *mine), (theirs, *other), strict=True):
        assert (one - truth).norm() <= (1e-13 if dtype == torch.float64 else 1e-5) * truth.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_machine_code_is_exact_where_few_keys_weigh_all(dtype: torch.dtype) -> None:
    """Scores of hundreds, of either sign: exponentials of them alone are no numbers."""
    torch.manual_seed(0)
    (chunk,) = chunks_of(4, 1000, 30)
    given_ = [30 * each.detach().double() for each in heads(chunk, 2, dtype)]
    inputs = [each.to(dtype).requires_grad_() for each in given_]
    truths = [each.detach().double().requires_grad_() for each in inputs]
    ours, theirs = attention(chunk, *inputs, 0.3), by_mask(chunk, *truths, 0.3, None)
    pull = torch.randn_like(ours)
    mine = torch.autograd.grad(ours, inputs, pull)
    other = torch.autograd.grad(theirs, truths, pull.double())
    for one, truth in zip((ours, *mine), (theirs, *other), strict=True):
        assert (one - truth).norm() <= (1e-12 if dtype == torch.float64 else 1e-3) * truth.norm()


@pytest.mark.parametrize("kernels", ["on", "off"])
def test_changing_one_branch_leaves_the_others_bit_equal(kernels: str, request: pytest.FixtureRequest) -> None:
    if kernels == "off":
        request.getfixturevalue("no_kernels")
    torch.manual_seed(0)
    lines = [np.asarray(line) for line in ([0, 0, 1, 1], [0, 0, 2, 2, 2], [0, 0, 3, 3])]
    (chunk,) = PackedPrefixTree.pack(lines, np.arange(3), np.asarray([4, 5, 4])).chunks(99)
    attend = ChunkAttention(chunk)
    given_ = [torch.randn(2, 9, 8) for _ in range(3)]
    before = attend(*given_, 0.5)
    changed = [each.clone() for each in given_]
    for each in changed:
        each[:, 4:6] += 1.0
    after = attend(*changed, 0.5)
    still = [0, 1, 2, 3, 6, 7, 8]
    assert torch.equal(before[:, still], after[:, still])
    assert not torch.equal(before[:, 4:6], after[:, 4:6])
