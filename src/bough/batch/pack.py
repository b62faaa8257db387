"""From trees to rows: each token that is learned from lies in the batch once, after exactly what was read before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bough.batch.batch import Batch
from bough.batch.path_index import index_paths
from bough.tree import (
    Bools,
    Credited,
    Floats,
    Ints,
    Kind,
    Rewarded,
    Source,
    Tree,
    counted,
    sum_of_subtree,
    sum_to_root,
    text_start,
    turns,
)


def pack(credited: Sequence[Credited], *, paths: bool = False, experts: Sequence[Tree] = ()) -> Batch:
    """Every sampled token on a counted path that is not left out, with its credit.

    A row is a text: it starts at the root or at an `EDIT` and follows one branch to the last token it trains. A token
    that several rows contain is trained in the first.

    Args:
        credited: The trees.
        paths: Whether to make the path view too (`Batch.walks`).
        experts: Demonstrations to lie beside them, marked as such.

    Raises:
        ValueError: when a sampled token has nothing before it.
    """
    lessons = [_Lesson.of_credit(tree) for tree in credited] + [_Lesson.of_expert(tree) for tree in experts]
    return _pack(lessons, [*credited, *map(_shown, experts)] if paths else None)


def pack_demonstrations(trees: Sequence[Tree]) -> Batch:
    """Every action token of a teacher on a counted path, with a gain of 1 and a behaviour log-probability of 0.

    Raises:
        ValueError: when an action has nothing before it.
    """
    return _pack([_Lesson.of_expert(tree) for tree in trees], None)


def _shown(tree: Tree) -> Credited:
    """A demonstration as a tree with credit."""
    zero = np.zeros(len(tree.token), dtype=np.float32)
    return Credited(rewarded=Rewarded(tree=tree, channels={}), positive=zero + 1, negative=zero)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lesson:
    """A tree, and which of its nodes teach what.

    Attributes:
        ends: The leaves of the paths that are learned from.
        teaches: [N] bool.
        behaviour: [T].
        gain: [T].
        lose: [T].
        goals: [T] each.
        thoughts: [T] each.
        expert: Whether it is a demonstration.
    """

    tree: Tree
    ends: Ints
    teaches: Bools
    rollout_logprob: Floats
    positive: Floats
    negative: Floats
    value_targets: Mapping[str, Floats]
    old_values: Mapping[str, Floats]
    expert: bool

    @classmethod
    def of_credit(cls, credited: Credited) -> "_Lesson":
        """What the policy sampled."""
        tree = credited.tree
        ends = np.setdiff1d(counted(tree), credited.excluded_leaves)
        return cls(
            tree=tree,
            ends=ends,
            teaches=_teaches(tree, ends, Source.SAMPLED),
            rollout_logprob=tree.logprob,
            positive=credited.positive,
            negative=credited.negative,
            value_targets=credited.value_targets,
            old_values={name: credited.rewarded.estimates[name] for name in credited.value_targets},
            expert=False,
        )

    @classmethod
    def of_expert(cls, tree: Tree) -> "_Lesson":
        """What a teacher wrote."""
        ends, zero = counted(tree), np.zeros(len(tree.token), dtype=np.float32)
        teaches = _teaches(tree, ends, Source.TEACHER)
        return cls(
            tree=tree,
            ends=ends,
            teaches=teaches,
            rollout_logprob=zero,
            positive=zero + 1,
            negative=zero,
            value_targets={},
            old_values={},
            expert=True,
        )

    def texts(self) -> list[list[int]]:
        """The nodes of each row: one row for each teaching node with no other after it in its text."""
        tree, parent = self.tree, self.tree.parent.tolist()
        start, starts_text = text_start(tree).tolist(), (tree.kind == Kind.EDIT).tolist()
        teaches, goes_on = self.teaches.tolist(), [False] * tree.nodes
        for node in range(tree.nodes - 1, 0, -1):
            if not starts_text[node] and (teaches[node] or goes_on[node]):
                goes_on[parent[node]] = True
        rows: list[list[int]] = []
        for node in np.flatnonzero(self.teaches).tolist():
            if goes_on[node]:
                continue
            row = [node]
            while row[-1] != start[node]:
                row.append(parent[row[-1]])
            rows.append(row[::-1])
        return rows

    def paths(self) -> tuple[Floats, Floats, Bools]:
        """[N] each: how many counted paths run through a node, the sum of one over their lengths, whether these agree.

        A length is the number of tokens on the path that teach.
        """
        tree = self.tree
        ends = self.ends
        length = sum_to_root(tree, np.where(self.teaches, np.diff(tree.span), 0.0))[ends]
        ends, length = ends[length > 0], length[length > 0]
        through, inverse, total, squares = (
            sum_of_subtree(tree, _at(tree, ends, value))
            for value in (np.ones_like(length), 1.0 / length, length, length**2)
        )
        # Sums of integers are exact, and the squares sum to the square of the sum only when all are equal.
        return through, inverse, through * squares == total**2


def _at(tree: Tree, nodes: Ints, value: Floats) -> Floats:
    column = np.zeros(tree.nodes, dtype=np.float64)
    column[nodes] = value
    return column


def _teaches(tree: Tree, ends: Ints, source: Source) -> Bools:
    """[N] bool: the actions of `source`, with tokens, on the way to `ends`."""
    written = (tree.kind == Kind.ACTION) & (tree.source == source) & (np.diff(tree.span) > 0)
    return written & (sum_of_subtree(tree, _at(tree, ends, np.ones(len(ends)))) > 0)


def _lay(lesson: _Lesson, heads: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The rows of one tree, as the columns of `_DTYPES`."""
    tree, texts = lesson.tree, lesson.texts()
    nodes = np.asarray([node for text in texts for node in text], dtype=np.int64)
    lengths = np.diff(tree.span)[nodes]
    index = np.arange(int(lengths.sum())) + np.repeat(tree.span[nodes] - (np.cumsum(lengths) - lengths), lengths)
    first = np.zeros(len(nodes), dtype=np.bool_)
    first[np.unique(nodes, return_index=True)[1]] = True
    train = np.repeat(lesson.teaches[nodes] & first, lengths)
    taught, node = index[train], np.repeat(nodes, lengths)[train]
    paths, inverse_length, even = lesson.paths()
    ends = np.cumsum([0, *(len(text) for text in texts)])
    unknown = np.full(len(tree.token), np.nan, dtype=np.float32)
    said = {f"goal/{name}": lesson.value_targets.get(name, unknown)[taught] for name in heads}
    said |= {f"thought/{name}": lesson.old_values.get(name, unknown)[taught] for name in heads}
    return said | {
        "tokens": tree.token[index],
        "train": train,
        "length": np.diff(np.concatenate([[0], np.cumsum(lengths)])[ends]),
        "rollout_logprob": lesson.rollout_logprob[taught],
        "positive": lesson.positive[taught],
        "negative": lesson.negative[taught],
        "paths": paths[node],
        "inverse_length": inverse_length[node],
        "even": even[node],
        "turn": turns(tree)[node] - 1,
        "expert": np.full(len(taught), lesson.expert),
        "version": tree.policy_version[node],
        "origin": taught,
    }


_DTYPES = {
    "tokens": np.int64,
    "train": np.bool_,
    "length": np.int64,
    "rollout_logprob": np.float32,
    "positive": np.float32,
    "negative": np.float32,
    "paths": np.int64,
    "inverse_length": np.float64,
    "even": np.bool_,
    "origin": np.int64,
    "turn": np.int64,
    "expert": np.bool_,
    "version": np.int64,
}
_OF_TOKENS = (
    "rollout_logprob",
    "positive",
    "negative",
    "paths",
    "inverse_length",
    "even",
    "origin",
    "turn",
    "expert",
    "fresh",
)


def _pack(lessons: Sequence[_Lesson], credited: Sequence[Credited] | None) -> Batch:
    heads = sorted({name for lesson in lessons for name in lesson.value_targets})
    dtypes = _DTYPES | {f"{kind}/{name}": np.float32 for kind in ("goal", "thought") for name in heads}
    laid = [_lay(lesson, heads) for lesson in lessons]
    start = np.cumsum([0, *(len(lesson.tree.token) for lesson in lessons)])
    for begin, part in zip(start.tolist(), laid, strict=False):
        part["origin"] += begin
    column: dict[str, NDArray[Any]] = {
        name: np.concatenate([np.empty(0, dtype=dtype), *(part[name] for part in laid)]).astype(dtype)
        for name, dtype in dtypes.items()
    }
    row = np.concatenate([[0], np.cumsum(column["length"])])
    column["fresh"] = ~column["expert"] & (column["version"] == column["version"].max(initial=-1))
    of_tokens: dict[str, Any] = {name: torch.as_tensor(column[name]) for name in _OF_TOKENS}
    return Batch(
        tokens=torch.as_tensor(column["tokens"]),
        position=torch.as_tensor(np.arange(row[-1]) - np.repeat(row[:-1], column["length"])),
        tree=torch.as_tensor(np.repeat(np.arange(len(laid)), [len(part["length"]) for part in laid])),
        row=torch.as_tensor(row),
        at=torch.as_tensor(np.flatnonzero(column["train"])),
        value_targets={name: torch.as_tensor(column[f"goal/{name}"]) for name in heads},
        old_values={name: torch.as_tensor(column[f"thought/{name}"]) for name in heads},
        path_index=None if credited is None else index_paths(credited, column["origin"]),
        **of_tokens,
    )
