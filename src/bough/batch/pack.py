"""From trees to rows: each token that is learned from lies in the batch once, after exactly what was read before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bough.batch.batch import Batch
from bough.tree import (
    Bools,
    Credited,
    Floats,
    Ints,
    Kind,
    Source,
    Tree,
    counted,
    paths_through,
    sum_of_subtree,
    sum_to_root,
    text_start,
)


def pack(credited: Sequence[Credited]) -> Batch:
    """Every sampled token on a counted path, with its credit.

    A row is a text: it starts at the root or at an `EDIT` and follows one branch to the last token it trains. A token
    that several rows contain is trained in the first.

    Raises:
        ValueError: when a sampled token has nothing before it.
    """
    return _pack([_Lesson.of(tree.tree, Source.SAMPLED, tree.tree.logprob, tree.gain, tree.lose) for tree in credited])


def pack_demonstrations(trees: Sequence[Tree]) -> Batch:
    """Every action token of a teacher on a counted path, with a gain of 1 and a behaviour log-probability of 0.

    Raises:
        ValueError: when an action has nothing before it.
    """
    lessons: list[_Lesson] = []
    for tree in trees:
        zero = np.zeros(len(tree.token), dtype=np.float32)
        lessons.append(_Lesson.of(tree, Source.TEACHER, zero, zero + 1, zero))
    return _pack(lessons)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lesson:
    """A tree, and which of its nodes teach what.

    Attributes:
        teaches: [N] bool.
        behaviour: [T].
        gain: [T].
        lose: [T].
    """

    tree: Tree
    teaches: Bools
    behaviour: Floats
    gain: Floats
    lose: Floats

    @classmethod
    def of(cls, tree: Tree, source: Source, behaviour: Floats, gain: Floats, lose: Floats) -> "_Lesson":
        """The action tokens of `source` on counted paths."""
        teaches = (tree.kind == Kind.ACTION) & (tree.source == source) & (np.diff(tree.span) > 0)
        return cls(tree=tree, teaches=teaches & (paths_through(tree) > 0), behaviour=behaviour, gain=gain, lose=lose)

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
        ends = counted(tree)
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


def _lay(lesson: _Lesson) -> dict[str, NDArray[np.generic]]:
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
    return {
        "tokens": tree.token[index],
        "train": train,
        "length": np.diff(np.concatenate([[0], np.cumsum(lengths)])[ends]),
        "behaviour": lesson.behaviour[taught],
        "gain": lesson.gain[taught],
        "lose": lesson.lose[taught],
        "paths": paths[node],
        "inverse_length": inverse_length[node],
        "even": even[node],
    }


_DTYPES = {
    "tokens": np.int64,
    "train": np.bool_,
    "length": np.int64,
    "behaviour": np.float32,
    "gain": np.float32,
    "lose": np.float32,
    "paths": np.int64,
    "inverse_length": np.float64,
    "even": np.bool_,
}


def _pack(lessons: Sequence[_Lesson]) -> Batch:
    laid = [_lay(lesson) for lesson in lessons]
    column: dict[str, NDArray[Any]] = {
        name: np.concatenate([np.empty(0, dtype=dtype), *(part[name] for part in laid)]).astype(dtype)
        for name, dtype in _DTYPES.items()
    }
    row = np.concatenate([[0], np.cumsum(column["length"])])
    return Batch(
        tokens=torch.as_tensor(column["tokens"]),
        position=torch.as_tensor(np.arange(row[-1]) - np.repeat(row[:-1], column["length"])),
        tree=torch.as_tensor(np.repeat(np.arange(len(laid)), [len(part["length"]) for part in laid])),
        row=torch.as_tensor(row),
        at=torch.as_tensor(np.flatnonzero(column["train"])),
        behaviour=torch.as_tensor(column["behaviour"]),
        gain=torch.as_tensor(column["gain"]),
        lose=torch.as_tensor(column["lose"]),
        paths=torch.as_tensor(column["paths"]),
        inverse_length=torch.as_tensor(column["inverse_length"]),
        even=torch.as_tensor(column["even"]),
    )
