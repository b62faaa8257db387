"""Batches: trees as rows of tokens, packed so that a model computes each token once."""

from bough.batch.attention import Attend, needs_masks
from bough.batch.batch import Batch, MiniBatch
from bough.batch.chunk import Chunk
from bough.batch.chunked_forward import MAX_TARGET_SHARE, ChunkedForward, ChunkOutput, skipped_tokens
from bough.batch.logprob import chosen_logprobs, logits_at_once
from bough.batch.pack import pack, pack_demonstrations
from bough.batch.prefix_tree import PackedPrefixTree
from bough.batch.shares import divide, shares

__all__ = [
    "MAX_TARGET_SHARE",
    "Attend",
    "Batch",
    "Chunk",
    "ChunkOutput",
    "ChunkedForward",
    "MiniBatch",
    "PackedPrefixTree",
    "chosen_logprobs",
    "divide",
    "logits_at_once",
    "needs_masks",
    "pack",
    "pack_demonstrations",
    "shares",
    "skipped_tokens",
]
