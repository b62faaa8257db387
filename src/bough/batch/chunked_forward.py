"""A model's forward and backward pass over a packed prefix tree in chunks: one chunk is in memory at a time.

    forward    chunk 0, 1, 2, ...    each stores the keys and values that later ones see
    backward   ..., 2, 1, 0          each stores the gradient of the keys and values of its prefix

Keys and values of a chunk's prefix are leaves of its graph. Their gradient is added to that of the chunk that computed
them when its turn comes, so the total is the gradient of one pass over the whole tree, for any loss.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bough.batch.attention import Attend, ChunkAttention
from bough.batch.chunk import Chunk
from bough.batch.kv_store import KVGradCarry, KVPrefix, KVStore
from bough.batch.prefix_tree import PackedPrefixTree
from bough.tree import Ints

Forward: TypeAlias = Callable[[Tensor, Tensor, Attend, Tensor | None, Attend | None], Tensor]
"""A model: (tokens [n], positions [n], attend, rows [u] or None, attend_last) -> final hidden states [n, W], or [u, W].

`attend_last` may replace `attend` in the last layer, and returns `rows` alone."""

MAX_TARGET_SHARE = 0.8
"""The last layer runs for some tokens alone if these are at most this share of a chunk: it computes their queries, keys
and values twice."""


def skipped_tokens(tokens: int, trained: int) -> int:
    """How many of a chunk's tokens skip the last layer, as no token is predicted after them."""
    return tokens - max(trained, 1) if max(trained, 1) <= MAX_TARGET_SHARE * tokens else 0


GetPrefix: TypeAlias = Callable[[int, Tensor, Tensor], KVPrefix | None]
"""(layer, a chunk's keys [K, n, D], its values [K, n, D]) -> those of its prefix."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkOutput:
    """The model's output on a chunk.

    Attributes:
        hidden: [m, W], the states from which m trained tokens are predicted.
        trained: [m] int64, which trained tokens of the batch these are.
    """

    hidden: Float[Tensor, "m W"]
    trained: Int[Tensor, " m"]


class ChunkedForward:
    """A model's passes over a packed prefix tree. The weights must not change between chunks.

    Attributes:
        groups: The chunks, grouped so that no chunk sees tokens of another group.
    """

    def __init__(self, model: Forward, packed: PackedPrefixTree, max_tokens: int) -> None:
        """Plan the passes; no token is computed yet.

        Args:
            model: The forward pass.
            packed: The tokens.
            max_tokens: Most tokens of a chunk.
        """
        self._model, self._packed, self._max_tokens = model, packed, max_tokens
        self.groups = packed.chunk_groups(max_tokens)

    def forward(self) -> Iterator[ChunkOutput]:
        """Every chunk, first to last, without gradients."""
        for chunks in self.groups:
            yield from self._forward(chunks, _SharedTokens(self._packed.shared_tokens(chunks)))

    def backward(self) -> Iterator[ChunkOutput]:
        """Every chunk, last to first. Call `backward` on each output before taking the next."""
        for chunks in reversed(self.groups):
            shared = self._compute_shared(self._packed.shared_tokens(chunks))
            carry: KVGradCarry | None = None
            for chunk in reversed(chunks):
                carry = KVGradCarry(shared.store, shared.own(chunk), shared.place(chunk.past), carry)
                yield self._run(chunk, carry.prefix)
                carry.end()

    def _forward(
        self, chunks: Sequence[Chunk], shared: "_SharedTokens", *, predicts: bool = True
    ) -> Iterator[ChunkOutput]:
        for chunk in chunks:
            own, past = shared.own(chunk), shared.place(chunk.past)
            with torch.no_grad():
                output = self._run(chunk, partial(shared.store.write, own, past), predicts=predicts)
            yield output

    def _compute_shared(self, tokens: Ints) -> "_SharedTokens":
        """Compute the keys and values of the tokens that later chunks see, and nothing else."""
        shared = _SharedTokens(tokens)
        if len(tokens):
            again = ChunkedForward(self._model, self._packed.take(tokens), self._max_tokens)
            # In that packed tree every token is stored, at its own index.
            whole = _SharedTokens(np.arange(len(tokens)), shared.store)
            for chunks in again.groups:
                for _ in again._forward(chunks, whole, predicts=False):
                    pass
        return shared

    def _run(self, chunk: Chunk, get_prefix: GetPrefix, *, predicts: bool = True) -> ChunkOutput:
        own, at, attention = slice(chunk.first, chunk.last), self._packed.at, ChunkAttention(chunk)

        def attend(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            return attention(query, key, value, scale, window, get_prefix(layer, key, value))

        def only_store(
            layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, *, window: int | None = None
        ) -> Tensor:
            """The last layer of a pass that only stores keys and values."""
            del scale, window
            get_prefix(layer, key, value)
            return query[:, :1]

        tokens, position = self._packed.tokens[own], self._packed.position[own]
        mine = np.flatnonzero((at >= chunk.first) & (at < chunk.last))
        # Several tokens may be predicted after one.
        once, rows = np.unique(at[mine] - chunk.first, return_inverse=True)
        few = skipped_tokens(len(chunk), len(once)) > 0
        # Layers need one token at least.
        wanted = torch.as_tensor(once if len(once) else [len(chunk) - 1], device=tokens.device) if few else None
        hidden = self._model(tokens, position, attend, wanted, None if predicts else only_store)
        at_rows = torch.as_tensor(rows if few else once[rows], device=tokens.device)
        trained = torch.as_tensor(self._packed.prediction[mine], device=tokens.device)
        return ChunkOutput(hidden=hidden[at_rows], trained=trained)


class _SharedTokens:
    """The tokens of a chunk group that a later chunk than their own sees, and their keys and values."""

    def __init__(self, tokens: Ints, store: KVStore | None = None) -> None:
        """For the tokens [L] of the packed tree, ascending; the store is empty unless it is given."""
        self._tokens = tokens
        self.store = KVStore(len(tokens)) if store is None else store

    def own(self, chunk: Chunk) -> tuple[Ints, Ints]:
        """Which of a chunk's tokens are stored, and where."""
        there = np.flatnonzero((self._tokens >= chunk.first) & (self._tokens < chunk.last))
        return self._tokens[there] - chunk.first, there

    def place(self, tokens: Ints) -> Ints:
        """Where tokens are stored."""
        return np.searchsorted(self._tokens, tokens)
