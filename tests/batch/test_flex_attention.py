"""FlexAttention against the other attentions, and its block masks against PyTorch's, on a CPU without compilation."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention import flex_attention as flex

from bough.batch import PackedPrefixTree
from bough.batch.attention import ChunkAttention, needs_masks, sees
from bough.batch.chunk import Chunk
from bough.batch.flex_attention import BLOCK, block_mask, uses_flex
from bough.batch.kv_store import KVPrefix

CPU = torch.device("cpu")
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


def chunks_of(seed: int, most: int, texts: int = 12) -> list[Chunk]:
    """Random texts that often begin alike, in pieces of up to 90 tokens."""
    rng = np.random.default_rng(seed)
    lines = [np.repeat(rng.integers(2, size=6), rng.integers(1, 90, size=6)) for _ in range(texts)]
    lines += [line[: len(line) // 2] for line in lines[:3]]
    after = np.asarray([len(line) for line in lines])
    return PackedPrefixTree.pack(lines, np.arange(len(lines)), after).chunks(most)


def heads(chunk: Chunk, kv_heads: int, dtype: torch.dtype, width: int = 16) -> list[Tensor]:
    n, m = len(chunk), len(chunk.position)
    return [torch.randn(shape, dtype=dtype) for shape in ((4, n, width), (kv_heads, m, width), (kv_heads, m, width))]


def run(chunk: Chunk, given: list[Tensor], window: int | None) -> Tensor:
    """Attention as an update computes it, with the keys of the past apart."""
    query, key, value = given
    past = len(chunk.past)
    own = [each[:, past:] for each in (key, value)]
    prefix = KVPrefix(key=key[:, :past], value=value[:, :past], at=np.arange(past)) if past else None
    return ChunkAttention(chunk)(query, *own, 0.3, window, prefix)


@pytest.mark.parametrize("window", [None, 1, 70, 300])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_same_attention(window: int | None, kv_heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    chunks = chunks_of(0, 600)[:2] + chunks_of(1, 10**6)
    assert {len(chunk.past) > 0 for chunk in chunks} == {True, False}
    for chunk in chunks:
        given = heads(chunk, kv_heads, torch.float32)
        found = dict[str, Tensor]()
        for choice in ("flex", "masks", "auto"):
            monkeypatch.setenv("BOUGH_ATTENTION", choice)
            found[choice] = run(chunk, given, window)
        assert torch.allclose(found["flex"], found["masks"], rtol=0, atol=5e-6)
        assert torch.allclose(found["flex"], found["auto"], rtol=0, atol=5e-6)


def test_block_lists_are_those_of_pytorch() -> None:
    for seed in range(4):
        for chunk in chunks_of(seed, 600) + chunks_of(seed, 10**6):
            mask = block_mask(chunk, None, CPU)
            theirs = flex.create_block_mask(mask.mask_mod, None, None, len(chunk), len(chunk.position), "cpu")
            for name in ("kv", "full_kv", "q", "full_q"):
                ours, other = (_lists(each, name) for each in (mask, theirs))
                assert ours == other, name
            assert torch.equal(mask.to_dense(), theirs.to_dense())
            assert mask.shape == theirs.shape


@pytest.mark.parametrize("window", [None, 1, 70, 300])
def test_every_pair_that_is_seen_lies_in_a_listed_block(window: int | None) -> None:
    full = 0
    for seed in range(4):
        for chunk in chunks_of(seed, 600):
            mask, whole = block_mask(chunk, window, CPU), sees(chunk, window, CPU)
            listed, complete = (
                _dense(mask, name)
                .repeat_interleave(BLOCK, 0)
                .repeat_interleave(BLOCK, 1)[: len(whole), : whole.shape[1]]
                for name in ("kv", "full_kv")
            )
            assert not bool((whole & ~(listed | complete)).any())
            assert bool(whole[complete].all())
            assert not bool((listed & complete).any())
            index = [torch.arange(n) for n in whole.shape]
            by_element: Any = mask.mask_mod
            assert torch.equal(by_element(None, None, index[0][:, None], index[1]), whole)
            full += int(complete.sum())
    assert full > 0 or window in (1, 70)


def _lists(mask: Any, name: str) -> list[list[int]]:
    count, which = getattr(mask, f"{name}_num_blocks")[0, 0], getattr(mask, f"{name}_indices")[0, 0]
    return [row[:many].tolist() for many, row in zip(count.tolist(), which, strict=True)]


def _dense(mask: Any, name: str) -> Tensor:
    columns = getattr(mask, f"{name}_indices").shape[-1]
    found = torch.zeros((len(_lists(mask, name)), columns), dtype=torch.bool)
    for row, blocks in enumerate(_lists(mask, name)):
        found[row, blocks] = True
    return found


def test_few_compilations() -> None:
    """Chunks of any length and prefix take one compilation each with and without a prefix; the scale is constant."""
    compiled = _counted()
    torch._dynamo.reset()
    for seed in range(2):
        for chunk in chunks_of(seed, 600):
            query, key, value = (each[None] for each in heads(chunk, 2, torch.float32))
            expected = flex.flex_attention(
                query, key, value, block_mask=block_mask(chunk, None, CPU), scale=0.3, enable_gqa=True
            )
            found = compiled(query, key, value, block_mask(chunk, None, CPU), 0.3)
            assert torch.allclose(found, expected, atol=1e-6)
    assert len(_counts) <= 4


_counts: list[int] = []


def _counted() -> Callable[..., Tensor]:
    """The attention, compiled as on CUDA up to its kernels, counting compilations."""
    from bough.batch.flex_attention import _attend

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        _counts.append(len(inputs))
        return graph.forward

    compiler: Any = torch.compile
    return compiler(_attend, dynamic=True, backend=backend)


def test_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    query = torch.zeros(4, 2048, 64)
    assert not uses_flex(query, 4096)
    assert not needs_masks(query, 4096)
    monkeypatch.setenv("BOUGH_ATTENTION", "flex")
    assert uses_flex(query, 1)
    monkeypatch.setenv("BOUGH_ATTENTION", "masks")
    assert needs_masks(query, 4096)
    monkeypatch.setenv("BOUGH_ATTENTION", "dense")
    with pytest.raises(ValueError, match=r"BOUGH_ATTENTION: got 'dense'; need one of auto, flex, masks"):
        uses_flex(query, 1)


def test_no_gradient_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOUGH_ATTENTION", "flex")
    (chunk, *_) = chunks_of(0, 600)
    given = [each.requires_grad_() for each in heads(chunk, 2, torch.float32)]
    with warnings.catch_warnings(), pytest.raises(NotImplementedError, match="does not support backward on CPU"):
        run(chunk, given, None)
