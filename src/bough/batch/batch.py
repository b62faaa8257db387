"""Packed batches: rows of tokens end to end, and one column for each property of a trained token."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from bough.batch.packed_tree import PackedTree
from bough.batch.path_index import PathIndex
from bough.batch.prefix_tree import PackedPrefixTree
from bough.tree import Ints, PathCounts

Derive: TypeAlias = Callable[[PackedTree], NDArray[Any]]
"""Returns the entries of a column, [m], for the trained tokens of one tree."""


def column(dtype: DTypeLike, derive: Derive) -> dict[str, Any]:
    """Metadata of a field of `Batch` with one entry for each trained token; `pack` computes the field from it."""
    return {"dtype": dtype, "derive": derive}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """R rows of U tokens in all, M of which are trained. A row is one text from its first token; no row is padded.

    Two paths through one tree, prompt `7 8`, then action `1 2`, then observation `9`, then action `3` or `4 5`:

        row 0   7 8 [1 2] 9 [3]         row 1   7 8 1 2 9 [4 5]         [ ] is trained
        tokens  7 8 1 2 9 3 7 8 1 2 9 4 5       at      2 3 5 11 12
        row     0 6 13                          paths   2 2 1 1 1

    Attributes:
        tokens: [U] int64, vocabulary ids.
        position: [U] int64, index of each token in its row.
        tree: [R] int64, the tree of each row; ascending in a fresh batch.
        row: [R + 1] int64; the tokens of row i are `tokens[row[i] : row[i + 1]]`.
        at: [M] int64, indices of the trained tokens in `tokens`, ascending in a fresh batch. Each is predicted from
            the token before it, which is in the same row.
        rollout_logprob: [M] float32, log-probability when it was sampled.
        positive: [M] float32, see `token_advantages`.
        negative: [M] float32, see `token_advantages`.
        paths: [M] int64, number of counted paths through each trained token.
        inverse_length: [M] float64, the sum over these paths of one over the number of their trained tokens. Over the
            tokens of whole trees it sums to the number of paths.
        equal_length: [M] bool, whether these paths have equally many trained tokens.
        origin: [M] int64, index among all tokens of the packed trees, end to end.
        turn: [M] int64, number of its turn on each of these paths, 0 for the first.
        allowed: [M] int64, index in `allowed_sets` of the tokens among which it was sampled; -1 where these are all.
        expert: [M] bool, whether the token is from a demonstration.
        on_policy: [M] bool, whether the newest of the batch's sampling policies sampled the token, at the temperature
            of the run.
        value_targets: By the name of a value head, [M] float32, as in `Credited`.
        old_values: By the name of a value head, [M] float32: its value before the update.
        allowed_sets: [K, B] uint8, as in `Tree`.
        path_index: The same tokens path by path; None in a micro-batch, or without `paths`.
        counted_only: The paths that count in the mean of the loss without a token here; see `Normalizer`.

    Raises:
        ValueError: when a trained token has no token before it for the prediction.
    """

    tokens: Int[Tensor, " U"]
    position: Int[Tensor, " U"]
    tree: Int[Tensor, " R"]
    row: Int[Tensor, " R+1"]
    at: Int[Tensor, " M"]
    # The only list of columns of trained tokens: each with its dtype and its value for the trained tokens of a tree.
    rollout_logprob: Float[Tensor, " M"] = field(
        metadata=column(np.float32, lambda t: np.zeros(len(t.token)) if t.is_demonstration else t.tree.logprob[t.token])
    )
    positive: Float[Tensor, " M"] = field(metadata=column(np.float32, lambda t: t.positive[t.token]))
    negative: Float[Tensor, " M"] = field(metadata=column(np.float32, lambda t: t.negative[t.token]))
    paths: Int[Tensor, " M"] = field(metadata=column(np.int64, lambda t: t.paths[0][t.node]))
    inverse_length: Float[Tensor, " M"] = field(metadata=column(np.float64, lambda t: t.paths[1][t.node]))
    equal_length: Bool[Tensor, " M"] = field(metadata=column(np.bool_, lambda t: t.paths[2][t.node]))
    origin: Int[Tensor, " M"] = field(metadata=column(np.int64, lambda t: t.first_token + t.token))
    turn: Int[Tensor, " M"] = field(metadata=column(np.int64, lambda t: t.turn[t.node]))
    allowed: Int[Tensor, " M"] = field(metadata=column(np.int64, lambda t: t.allowed[t.token]))
    expert: Bool[Tensor, " M"] = field(metadata=column(np.bool_, lambda t: np.full(len(t.token), t.is_demonstration)))
    on_policy: Bool[Tensor, " M"] = field(metadata=column(np.bool_, lambda t: t.fresh[t.node]))
    value_targets: Mapping[str, Float[Tensor, " M"]] = field(default_factory=dict[str, Tensor])
    old_values: Mapping[str, Float[Tensor, " M"]] = field(default_factory=dict[str, Tensor])
    allowed_sets: UInt8[Tensor, "K B"] = field(default_factory=lambda: torch.zeros((0, 0), dtype=torch.uint8))
    path_index: PathIndex | None = None
    counted_only: PathCounts = PathCounts()

    def __post_init__(self) -> None:
        if bool((self.position[self.at] == 0).any()):
            raise ValueError(
                "Batch: got a trained token at the start of a text; need a token before it to predict it from"
            )

    @property
    def rows(self) -> int:
        """R."""
        return len(self.tree)

    @property
    def target(self) -> Int[Tensor, " M"]:
        """[M] int64: the trained tokens."""
        return self.tokens[self.at]

    def prefix_tree(self, *, merge: bool = True, states: Sequence[Ints] = ()) -> PackedPrefixTree:
        """Packs the input tokens of the predictions into a prefix tree, each token once.

        Args:
            merge: False to keep the rows separate.
            states: Further whole texts. The position after each follows the M trained tokens in the output.
        """
        tokens, row, at = (each.cpu().numpy() for each in (self.tokens, self.row, self.at))
        # A row's last token is trained and predicts no other.
        texts = [tokens[begin : end - 1] for begin, end in zip(row[:-1].tolist(), row[1:].tolist(), strict=True)]
        text = np.searchsorted(row, at, side="right") - 1
        after = np.concatenate([at - row[text], [len(state) for state in states]]).astype(np.int64)
        text = np.concatenate([text, len(texts) + np.arange(len(states))])
        return PackedPrefixTree.pack([*texts, *states], text, after, merge=merge, device=str(self.tokens.device))

    def select_tokens(self, trained: Int[Tensor, " m"]) -> "Batch":
        """Returns the same rows with some of the trained tokens, in the given order; without the path index."""
        columns = {name: getattr(self, name)[trained] for name in ("at", *dict(columns_of(Batch)))}
        heads = {
            name: {head: each[trained] for head, each in getattr(self, name).items()}
            for name in ("value_targets", "old_values")
        }
        return replace(self, **columns, **heads, path_index=None)

    def minibatches(self, count: int, seed: int) -> "list[MiniBatch]":
        """Returns batches for `count` optimizer steps: trees shuffled, all rows of a tree together.

        In a batch with paths the trees of a task stay together, since their paths may be compared. Demonstrations are
        spread evenly, so that no step is without sampled tokens. Fewer when there are fewer trees or tasks than
        `count`; none when there are no rows. Each gets an equal part of `counted_only`.

        Raises:
            ValueError: when `count` is below 1.
        """
        if count < 1:
            raise ValueError(f"Batch.minibatches: got count={count}; need at least 1")
        if count == 1 and self.rows:
            return [MiniBatch(batch=self, trained=torch.arange(len(self.at), device=self.at.device))]
        tree = self.tree.cpu().numpy() if self.path_index is None else self._by_task(self.path_index)
        dealt = np.random.default_rng(seed).permutation(np.unique(tree))
        last = np.isin(dealt, self._demonstrations(tree))
        sampled, shown = (np.array_split(some, count) for some in (dealt[~last], dealt[last]))
        hands = [hand for pair in zip(sampled, shown, strict=True) if len(hand := np.concatenate(pair))]
        shared = replace(self, counted_only=self.counted_only.split(count))
        parts = [shared.select_rows(torch.as_tensor(np.flatnonzero(np.isin(tree, hand)))) for hand in hands]
        if self.path_index is None:
            return parts
        return [
            MiniBatch(batch=replace(part.batch, path_index=self.path_index.take(part.trained)), trained=part.trained)
            for part in parts
        ]

    def _demonstrations(self, tree: Ints) -> Ints:
        """The trees, or tasks, among those of each row that have no sampled token."""
        sampled = torch.searchsorted(self.row, self.at[~self.expert], right=True) - 1
        return np.setdiff1d(tree, tree[sampled.cpu().numpy()])

    def _by_task(self, index: PathIndex) -> Ints:
        """[R] int64: the first tree of each row's task."""
        tree, row = self.tree.cpu().numpy(), self.row.cpu().numpy()
        first_token = self.at[
            index.trained[torch.searchsorted(index.path, torch.arange(len(index.task)).to(index.path))]
        ]
        of_path = tree[np.searchsorted(row, first_token.cpu().numpy(), side="right") - 1]
        task = index.task.cpu().numpy()
        # All trees of a task get the number of its first tree, so that one draw deals them together. A tree without a
        # path in the index keeps its own number.
        first = np.full(int(task.max(initial=-1)) + 1, len(tree))
        np.minimum.at(first, task, of_path)
        leader = np.arange(int(tree.max(initial=-1)) + 1)
        leader[of_path] = first[task]
        return leader[tree]

    def select_rows(self, rows: Int[Tensor, " r"]) -> "MiniBatch":
        """Returns the given rows, in the given order."""
        rows = rows.to(self.row.device)
        bounds = torch.searchsorted(self.at, self.row)  # of each row's trained tokens
        begin, length = self.row[rows], self.row.diff()[rows]
        row = torch.cat([length.new_zeros(1), length.cumsum(0)])
        tokens, trained = _ranges(begin, length), _ranges(bounds[rows], bounds.diff()[rows])
        # `at` counts from the first token of the batch, so the trained tokens of a row move with it.
        moved = (row[:-1] - begin).repeat_interleave(bounds.diff()[rows])
        batch = replace(
            self.select_tokens(trained),
            tokens=self.tokens[tokens],
            position=self.position[tokens],
            tree=self.tree[rows],
            row=row,
            at=self.at[trained] + moved,
        )
        return MiniBatch(batch=batch, trained=trained)

    def to(self, device: torch.device | str) -> "Batch":
        """Returns the same batch on another device."""
        moved: dict[str, Any] = {}
        for each in fields(self):
            held = getattr(self, each.name)
            if isinstance(held, Mapping):
                moved[each.name] = {name: column.to(device) for name, column in cast("_Named", held).items()}
            else:
                moved[each.name] = held.to(device) if isinstance(held, Tensor | PathIndex) else held
        return Batch(**moved)


_Named: TypeAlias = Mapping[str, Tensor]


def columns_of(batch: type[Batch]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the name, and the dtype and derivation (see `column`), of each column of trained tokens."""
    return ((each.name, each.metadata) for each in fields(batch) if each.metadata)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MiniBatch:
    """Some rows of a batch, and the indices of their trained tokens: `column[part.trained]` selects any other column.

    Attributes:
        batch: The rows, m trained tokens.
        trained: [m] int64, index of each of them among the trained tokens of the source batch.
    """

    batch: Batch
    trained: Int[Tensor, " m"]


def _ranges(start: Int[Tensor, " r"], length: Int[Tensor, " r"]) -> Int[Tensor, " n"]:
    """Concatenates ranges: start[0], start[0] + 1, ... (length[0] of them), then start[1], and so on."""
    shift = start - (length.cumsum(0) - length)
    return shift.repeat_interleave(length) + torch.arange(int(length.sum()), device=start.device)
