"""One tree prepared for packing: its rows of tokens, and its trained tokens with the inputs of their columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bough.tree import (
    Bools,
    Credited,
    Floats,
    Ints,
    Kind,
    PathCounts,
    Source,
    Tree,
    included_leaves,
    sum_of_subtree,
    sum_to_root,
    temperature_in,
    text_start,
    turns,
)


# Without slots, so cached rows and path counts are computed once.
@dataclass(frozen=True, kw_only=True, eq=False)
class PackedTree:
    """A tree, its included paths, and the credit of its T tokens.

    Attributes:
        tree: The tree.
        ends: The leaves of the included paths.
        trains: [N] bool, see `trained_nodes`.
        is_demonstration: Whether the trained tokens are a teacher's, not the policy's.
        positive: [T] float32, as in `token_advantages`.
        negative: [T] float32, as in `token_advantages`.
        value_targets: By the name of a value head, [T] float32.
        old_values: By the name of a value head, [T] float32, its value before the update.
        first_token: Index of the tree's first token among the tokens of all packed trees.
        allowed: [T] int64, as `Tree.allowed`, among the sets of all packed trees.
        newest: Newest policy version among the trained nodes of all packed trees; -1 without any.
    """

    tree: Tree
    ends: Ints
    trains: Bools
    is_demonstration: bool
    positive: Floats
    negative: Floats
    value_targets: Mapping[str, Floats]
    old_values: Mapping[str, Floats]
    first_token: int
    allowed: Ints
    newest: int

    @cached_property
    def fresh(self) -> Bools:
        """[N] bool: nodes that the newest policy sampled, at the temperature of the run."""
        other_temperature = [temperature_in(info) is not None for info in self.tree.info]
        return (self.tree.policy_version == self.newest) & ~np.asarray(other_temperature) & (not self.is_demonstration)

    @cached_property
    def rows(self) -> list[list[int]]:
        """The nodes of each row: one row for each trained node with no other after it in its text."""
        tree, parent = self.tree, self.tree.parent.tolist()
        start, starts_text = text_start(tree).tolist(), (tree.kind == Kind.EDIT).tolist()
        trains, continues = self.trains.tolist(), [False] * tree.nodes
        for node in range(tree.nodes - 1, 0, -1):
            if not starts_text[node] and (trains[node] or continues[node]):
                continues[parent[node]] = True
        rows: list[list[int]] = []
        for node in np.flatnonzero(self.trains).tolist():
            if continues[node]:
                continue
            row = [node]
            while row[-1] != start[node]:
                row.append(parent[row[-1]])
            rows.append(row[::-1])
        return rows

    @cached_property
    def _row_nodes(self) -> Ints:
        """The nodes of all rows, end to end."""
        return np.asarray([node for row in self.rows for node in row], dtype=np.int64)

    @cached_property
    def row_tokens(self) -> Ints:
        """[u] int64: the tokens of all rows, end to end, as indices into the tree's tokens."""
        lengths = np.diff(self.tree.span)[self._row_nodes]
        first = self.tree.span[self._row_nodes] - (np.cumsum(lengths) - lengths)
        return np.arange(int(lengths.sum())) + np.repeat(first, lengths)

    @cached_property
    def row_lengths(self) -> Ints:
        """[r] int64: the number of tokens of each row."""
        lengths = np.diff(self.tree.span)[self._row_nodes]
        ends = np.cumsum([0, *map(len, self.rows)])
        return np.diff(np.concatenate([[0], np.cumsum(lengths)])[ends])

    @cached_property
    def trained(self) -> Bools:
        """[u] bool: the trained tokens of the rows; a token of several rows is trained in the first."""
        nodes = self._row_nodes
        first = np.zeros(len(nodes), dtype=np.bool_)
        first[np.unique(nodes, return_index=True)[1]] = True
        return np.repeat(self.trains[nodes] & first, np.diff(self.tree.span)[nodes])

    @cached_property
    def token(self) -> Ints:
        """[m] int64: the trained tokens, as indices into the tree's tokens."""
        return self.row_tokens[self.trained]

    @cached_property
    def node(self) -> Ints:
        """[m] int64: the node of each trained token."""
        return np.repeat(self._row_nodes, np.diff(self.tree.span)[self._row_nodes])[self.trained]

    @cached_property
    def turn(self) -> Ints:
        """[N] int64: the number of each node's turn on its path, 0 for the first."""
        return turns(self.tree) - 1

    @cached_property
    def paths(self) -> tuple[Floats, Floats, Bools]:
        """[N] each: number of paths through a node, sum of one over their lengths, whether the lengths are equal.

        A length is the number of trained tokens of the path.
        """
        tree, ends = self.tree, self.ends
        length = _lengths(tree, self.trains)[ends]
        ends, length = ends[length > 0], length[length > 0]
        through, inverse, total, squares = (
            sum_of_subtree(tree, _at(tree, ends, value))
            for value in (np.ones_like(length), 1.0 / length, length, length**2)
        )
        # Sums of integers are exact, and the squares sum to the square of the sum only when all are equal.
        return through, inverse, through * squares == total**2


def trained_nodes(tree: Tree, ends: Ints, source: Source) -> Bools:
    """[N] bool: the actions of `source`, with tokens, on the paths to the leaves `ends`."""
    written = (tree.kind == Kind.ACTION) & (tree.source == source) & (np.diff(tree.span) > 0)
    return written & (sum_of_subtree(tree, _at(tree, ends, np.ones(len(ends)))) > 0)


def count_paths(credited: Sequence[Credited], trained: Mapping[int, Bools]) -> PathCounts:
    """Counts the included paths of some trees that have tokens of the policy.

    Args:
        credited: The trees.
        trained: By the `id` of a tree, [N] bool: its nodes whose tokens are counted already.
    """
    paths, path_tokens, unique_tokens, known = 0, 0, 0, dict(trained)
    for each in credited:
        tree, ends = each.tree, included_leaves(each)
        trains = trained_nodes(tree, ends, Source.SAMPLED)
        length = _lengths(tree, trains)[ends]
        seen = known.get(id(tree), np.zeros_like(trains))
        paths += int((length > 0).sum())
        path_tokens += int(length.sum())
        unique_tokens += int(np.diff(tree.span)[trains & ~seen].sum())
        known[id(tree)] = seen | trains
    return PathCounts(paths=paths, path_tokens=path_tokens, unique_tokens=unique_tokens)


def _lengths(tree: Tree, trains: Bools) -> Floats:
    """[N]: the number of trained tokens from the root to each node."""
    return sum_to_root(tree, np.where(trains, np.diff(tree.span), 0.0))


def _at(tree: Tree, nodes: Ints, value: Floats) -> Floats:
    column = np.zeros(tree.nodes, dtype=np.float64)
    column[nodes] = value
    return column
