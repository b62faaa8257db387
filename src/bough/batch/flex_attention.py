"""FlexAttention over a chunk of a packed prefix tree, for CUDA: only blocks with visible pairs are computed.

In depth-first order the queries that see a key are one run: query q sees key k when begin[k] <= q < end[k]. So the
blocks of the mask follow from the ends of these runs, and no dense mask is made.
"""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import flex_attention as flex

from bough.batch.chunk import Chunk
from bough.tree import Bools, Ints

BLOCK = 128
"""Queries and keys of a block."""

LEAST_KEYS = 1024
"""Chunks with fewer keys use masks: FlexAttention is reported to be slower than these at 512 keys, faster at 8,192."""

LEAST_WIDTH = 16
"""The narrowest head that FlexAttention takes."""

COMPILATIONS = 64
"""Most compilations: with and without gradients, windows and prefixes, by dtype and head. PyTorch's default of 8 would
end in a call that is not compiled, which computes all scores."""

VARIABLE, CHOICES = "BOUGH_ATTENTION", ("auto", "flex", "masks")
"""The environment variable that chooses the attention of updates, and its values."""

Mask: TypeAlias = flex.BlockMask


def attention_choice() -> str:
    """The environment variable `BOUGH_ATTENTION`: "flex", "masks", or "auto" without it.

    Raises:
        ValueError: when it has another value.
    """
    choice = os.environ.get(VARIABLE, "auto")
    if choice not in CHOICES:
        raise ValueError(f"{VARIABLE}: got {choice!r}; need one of {', '.join(CHOICES)}")
    return choice


def uses_flex(query: Tensor, keys: int) -> bool:
    """Whether queries [H, n, D] attend to that many keys by FlexAttention."""
    choice = attention_choice()
    if choice != "auto":
        return choice == "flex"
    # In float32 masks were up to 2.4 times as fast on an H200 (docs/performance.md).
    suits = query.dtype in (torch.bfloat16, torch.float16) and query.shape[-1] >= LEAST_WIDTH
    return query.device.type == "cuda" and suits and keys >= LEAST_KEYS and flex_fault(query.device) is None


@cache
def flex_fault(device: torch.device) -> str | None:
    """Why a CUDA device can't use FlexAttention; None if it can."""
    if find_spec("triton") is None:
        return "it needs Triton, which is not installed; do: pip install triton"
    major, minor = torch.cuda.get_device_capability(device)
    return None if major >= 8 else f"it needs compute capability 8.0, and this GPU has {major}.{minor}"


def block_mask(chunk: Chunk, window: int | None, device: torch.device) -> Mask:
    """The mask of a chunk: which of the C + n keys, those of the prefix first, each of the n queries sees.

    Args:
        chunk: The chunk.
        window: The most tokens of its text that a query sees, itself included; None is all.
        device: Of the queries and keys.
    """
    past, queries = len(chunk.past), len(chunk)
    begin: Ints = np.maximum(np.arange(past + queries) - past, 0)
    depth = chunk.position
    some, every = _blocks(begin, chunk.end, queries)
    begins, ends = _put(begin, device), _put(chunk.end, device)
    if window is None:

        def sees(batch: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
            del batch, head
            return (begins[k] <= q) & (q < ends[k])

    else:
        near, all_near = _near(depth[past:], depth, window)
        some, every = some & near, every & all_near
        # Numbers in a mask would be compiled in, or refused; elements of tensors are not.
        depths, out_of_reach = _put(depth[past:], device), _put(depth + window, device)

        def sees(batch: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
            del batch, head
            return (begins[k] <= q) & (q < ends[k]) & (depths[q] < out_of_reach[k])

    mask: Any = flex.BlockMask.from_kv_blocks(
        *_listed(some & ~every),
        *_listed(every),
        BLOCK_SIZE=BLOCK,
        mask_mod=sees,
        seq_lengths=(queries, past + queries),
    )
    return mask.to(device)


def flex_attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask, scale: float) -> Tensor:
    """Softmax attention of queries [H, n, D] to the keys [K, m, D] that they see, [H, n, D]; K divides H.

    On CUDA it is compiled on first use, which takes up to a minute. On a CPU it runs uncompiled and has no gradient.
    """
    attend = _compiled() if query.device.type == "cuda" else _attend
    return attend(query[None], key[None], value[None], mask, scale)[0]


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Mask, scale: float) -> Tensor:
    run: Any = flex.flex_attention
    return run(query, key, value, block_mask=mask, scale=scale, enable_gqa=True)


@cache
def _compiled() -> Callable[[Tensor, Tensor, Tensor, Mask, float], Tensor]:
    settings: Any = import_module("torch._dynamo.config")
    settings.recompile_limit = max(settings.recompile_limit, COMPILATIONS)
    untyped: Any = torch
    # Chunks differ in length, and a compilation takes seconds.
    return untyped.compile(_attend, dynamic=True)


def _blocks(begin: Ints, end: Ints, queries: int) -> tuple[Bools, Bools]:
    """[I, J] each: the blocks of queries and keys in which some pair is seen, and those in which every pair is.

    Key k is seen by the queries begin[k] to end[k] - 1.
    """
    rows, columns = -(-queries // BLOCK), -(-len(end) // BLOCK)
    # A key adds one in the block row where its queries begin, and takes it back after the row where they end.
    change = np.zeros((rows + 1, columns), dtype=np.int64)
    seen = np.flatnonzero(begin < end)
    np.add.at(change, (begin[seen] // BLOCK, seen // BLOCK), 1)
    np.add.at(change, ((end[seen] - 1) // BLOCK + 1, seen // BLOCK), -1)
    some: Bools = change.cumsum(axis=0)[:rows] > 0
    # Keys that fill the last block are never seen, so it is no whole block.
    lacking = columns * BLOCK - len(end)
    latest = np.pad(begin, (0, lacking), constant_values=queries).reshape(columns, BLOCK).max(axis=1)
    earliest = np.pad(end, (0, lacking)).reshape(columns, BLOCK).min(axis=1)
    first = np.arange(rows)[:, None] * BLOCK
    return some, (latest <= first) & (first + BLOCK <= earliest)


def _near(query: Ints, key: Ints, window: int) -> tuple[Bools, Bools]:
    """[I, J] each: the blocks in which some depths can be less than a window apart, and those in which all are."""
    (low, high), (key_low, key_high) = _ends(query), _ends(key)
    return low[:, None] - key_high < window, high[:, None] - key_low < window


def _ends(depth: Ints) -> tuple[Ints, Ints]:
    """Least and greatest depth of each block."""
    blocks = np.pad(depth, (0, -len(depth) % BLOCK), mode="edge").reshape(-1, BLOCK)
    return blocks.min(axis=1), blocks.max(axis=1)


def _listed(blocks: Bools) -> tuple[Tensor, Tensor]:
    """Per row the number of blocks, [1, 1, I] int32, and the blocks, those first, [1, 1, I, J] int32."""
    order = np.argsort(~blocks, axis=1, kind="stable")
    count, which = (torch.as_tensor(each.astype(np.int32)) for each in (blocks.sum(axis=1), order))
    return count[None, None], which[None, None]


def _put(numbers: Ints, device: torch.device) -> Tensor:
    return torch.as_tensor(numbers.astype(np.int32), device=device)
