"""Attention of a forest on CUDA: FlexAttention with a block mask made from where each token's followers end."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast, no_type_check

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from bough.batch.stretch import Stretch
from bough.tree import Bools, Ints

BLOCK = 128
"""Tokens of a block, of queries and of keys: the least that the compiled kernel takes."""


def flex(
    query: Float[Tensor, "H n D"],
    key: Float[Tensor, "K m D"],
    value: Float[Tensor, "K m D"],
    scale: float,
    mask: BlockMask,
) -> Float[Tensor, "H n D"]:
    """See `Attention`. Compiled on CUDA; elsewhere it runs uncompiled, without gradients, for tests."""
    kernel = _compiled() if query.device.type == "cuda" else flex_attention
    run = cast("Callable[..., Tensor]", kernel)
    return run(query[None], key[None], value[None], block_mask=mask, scale=scale, enable_gqa=len(query) != len(key))[0]


@cache
def _compiled() -> Any:
    # Dynamic shapes: forests have a new size at every step.
    return torch.compile(flex_attention, dynamic=True)  # pyright: ignore[reportUnknownMemberType]


def block_mask(stretch: Stretch, window: int | None, device: torch.device) -> BlockMask:
    """The same that `create_block_mask` finds by trying every pair, from the ends alone.

    A block is skipped when none of its pairs is seen and needs no mask when all are. A window only ever takes pairs
    away: blocks that it may touch are masked.
    """
    past, n = len(stretch.past), len(stretch)
    some, all_ = _blocks(stretch)
    if window is not None:
        some, all_ = some | all_, np.zeros_like(all_)
    key = torch.arange(-past, n, device=device)
    end, depth = (torch.as_tensor(each, device=device) for each in (stretch.end, stretch.position))

    @no_type_check  # torch traces it, which a checker of shapes would stand in the way of
    def sees(batch: Tensor, head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        del batch, head
        seen = (key[k] <= q) & (q < end[k])
        return seen if window is None else seen & (depth[past + q] - depth[k] < window)

    partly, wholly = (tuple(_lists(each, device)) for each in (some, all_))
    make = cast("Callable[..., BlockMask]", BlockMask.from_kv_blocks)
    return make(*partly, *wholly, BLOCK_SIZE=BLOCK, mask_mod=sees, seq_lengths=(n, past + n))


def _blocks(stretch: Stretch) -> tuple[Bools, Bools]:
    """[query blocks, key blocks] each: of which some pairs are seen but not all, and of which all are."""
    past, n = len(stretch.past), len(stretch)
    key = np.arange(-past, n)
    rows, columns = -(-n // BLOCK), -(-(past + n) // BLOCK)
    column = np.arange(past + n) // BLOCK
    # A key is seen by one run of queries.
    first, last = np.maximum(key, 0), stretch.end
    touched = _covered(first // BLOCK, (last - 1) // BLOCK + 1, column, rows, columns) > 0
    # All of a block of queries see it where that run has all of them; the last block may be short.
    whole_last = np.where(last == n, rows, last // BLOCK)
    whole = _covered(-(-first // BLOCK), whole_last, column, rows, columns)
    full = whole == np.bincount(column, minlength=columns)
    return touched & ~full, full


def _covered(first: Ints, last: Ints, column: Ints, rows: int, columns: int) -> Ints:
    """[rows, columns]: how many of the keys in each column cover each row, when a key covers rows first to last - 1."""
    steps = np.zeros((rows + 1, columns), dtype=np.int64)
    there = first < last
    np.add.at(steps, (first[there], column[there]), 1)
    np.add.at(steps, (last[there], column[there]), -1)
    return steps.cumsum(axis=0)[:rows]


def _lists(blocks: Bools, device: torch.device) -> tuple[Tensor, Tensor]:
    """How many blocks each row has, and which, those first."""
    count = blocks.sum(axis=1).astype(np.int32)
    which: NDArray[np.int32] = np.argsort(~blocks, axis=1, kind="stable").astype(np.int32)
    return torch.as_tensor(count, device=device)[None, None], torch.as_tensor(which, device=device)[None, None]
