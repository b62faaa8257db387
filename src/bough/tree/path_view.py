"""The path view of a batch: every counted path, turn by turn, as columns for credit rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from bough.tree.marks import Kind, Outcome
from bough.tree.stages import Rewarded
from bough.tree.tree import DTYPES, Bools, Floats, Info, Ints
from bough.tree.walk import is_counted, sum_at

Spans: TypeAlias = Mapping[str, tuple[int, int]]
"""By annotation, the first token of its part of an action and the end, counted from the action's first token."""


# Without slots, so cached properties are computed once for all rules.
@dataclass(frozen=True, kw_only=True, eq=False)
class PathView:
    """P counted paths of a batch of trees, and their S turns. A turn shared by paths occurs once for each path.

    Paths stand in the order of the trees and of `counted(tree)`; the turns of a path lie together, first to last. Nodes
    are numbered over the batch, tree after tree. A path of two turns, and a path that shares the first turn and has
    one more:

        path  0 0 1 1      turn  0 1 0 1      node  1 3 1 5      reward  0 1 0 0

    A turn may consist of several `ACTION` nodes in a row, its pieces. It has one place, one state and one reward. A
    path whose first turn is nodes 1 and 2, and a path that continues from node 1 with node 3:

        path  0 1          first  1 1         node  2 3          piece  1 2 1 3      piece_step  0 0 1 1

    Attributes:
        rewarded: The trees.
        task: [P] int64, the task of each path: 0 for the first to appear, and so on.
        tree: [P] int64, the tree of each path.
        leaf: [P] int64, the last node of each path.
        start: [P + 1] int64; the turns of path p are start[p] : start[p + 1].
        returns: [P] float64, the undiscounted return.
        path: [S] int64, the path of each turn.
        node: [S] int64, its last `ACTION` node, whose columns and info describe the whole action.
        first: [S] int64, its first `ACTION` node; equals `node` for a turn of one piece.
        place: [S] int64, the node acted from: the parent of its first node.
        reward: [S] float64, the reward from this action up to the next.
        key: [S] int64, the state acted in, as in `Tree.state_key`; 0 when unknown.
        piece: [Q] int64, the `ACTION` nodes of all turns, turn by turn.
        piece_step: [Q] int64, ascending: the turn of each piece.
        whole: [S] int64, ascending: the number of the turn; steps share a number in `by_node` and `by_fork`.
        offset: [trees + 1] int64; the nodes of tree i are offset[i] : offset[i + 1].
        through: [N] int64, number of counted paths through each node of the batch.
    """

    rewarded: tuple[Rewarded, ...]
    task: Ints
    tree: Ints
    leaf: Ints
    start: Ints
    returns: Floats
    path: Ints
    node: Ints
    first: Ints
    place: Ints
    reward: Floats
    key: Ints
    piece: Ints
    piece_step: Ints
    whole: Ints
    offset: Ints
    through: Ints

    @property
    def paths(self) -> int:
        """P."""
        return len(self.leaf)

    @property
    def turn(self) -> Ints:
        """[S] int64: the number of a turn on its path, 0 for the first."""
        return np.arange(len(self.path)) - self.start[self.path]

    @property
    def turns(self) -> Ints:
        """[P] int64: number of turns of each path."""
        return np.diff(self.start)

    @property
    def last(self) -> Bools:
        """[S] bool: whether a turn is the last of its path."""
        return np.arange(len(self.path)) == self.start[self.path + 1] - 1

    @cached_property
    def lengths(self) -> Ints:
        """[N] int64: number of tokens of each node."""
        spans = [np.diff(each.tree.span) for each in self.rewarded]
        return np.concatenate([np.zeros(0, dtype=np.int64), *spans])

    @cached_property
    def tokens(self) -> Ints:
        """[S] int64: the number of tokens of each turn."""
        return np.bincount(self.piece_step, self.lengths[self.piece], len(self.path)).astype(np.int64)

    @cached_property
    def sampled(self) -> Bools:
        """[T] bool: the tokens of the batch that the policy sampled."""
        return ~np.isnan(join(self.rewarded, "logprob"))

    @cached_property
    def shared(self) -> bool:
        """Whether some turn, or its first piece, is on several paths."""
        return bool(np.any(self.through[self.first] > 1))

    @cached_property
    def infos(self) -> tuple[list[Info], Ints]:
        """The infos of the turns' last `ACTION` nodes, each once, and [S] their indices."""
        everything = chain.from_iterable(each.tree.info for each in self.rewarded)
        acts = np.zeros(len(self.through), dtype=np.bool_)
        acts[self.node] = True
        return list(compress(everything, acts.tolist())), (np.cumsum(acts) - 1)[self.node]

    @cached_property
    def path_tokens(self) -> "PathTokens":
        """The tokens of every turn, in order."""
        lengths = self.lengths
        count = lengths[self.piece]
        piece = np.repeat(np.arange(len(self.piece)), count)
        place = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count)
        token = (np.cumsum(lengths) - lengths)[self.piece][piece] + place
        return PathTokens(token=token, step=self.piece_step[piece])

    def token_at(self, step: Ints, offset: Ints | int = 0) -> Ints:
        """[n] int64: the index in the batch of token `offset` [n] of turn `step` [n], counted over its pieces."""
        return self.path_tokens.token[self._begin[step] + offset]

    @cached_property
    def _begin(self) -> Ints:
        """[S] int64: the start of each turn's tokens in `path_tokens`."""
        return np.cumsum(self.tokens) - self.tokens

    @cached_property
    def by_node(self) -> "PathView":
        """The same paths with each `ACTION` node as a step, for rules over segments."""
        return self._split(np.ones(len(self.piece), dtype=np.bool_))

    @cached_property
    def by_fork(self) -> "PathView":
        """The same paths with turns split at the forks inside them, for rules that value nodes.

        A turn without a fork inside is one step, whatever its number of pieces.
        """
        through = self.through[self.piece]
        begins = np.ones(len(self.piece), dtype=np.bool_)
        # Paths fork and never merge, so equal counts mean the same paths.
        begins[1:] = (np.diff(self.piece_step) > 0) | (through[1:] != through[:-1])
        return self._split(begins)

    def _split(self, begins: Bools) -> "PathView":
        """The pieces [Q] as steps; a piece whose `begins` is False joins the step of the piece before."""
        step = np.cumsum(begins) - 1
        whole = self.piece_step[begins]
        if len(whole) == len(self.path):
            return self
        ends = np.append(begins[1:], True)
        inner = np.diff(whole, prepend=-1) == 0
        path, first = self.path[whole], self.piece[begins]
        return replace(
            self,
            start=np.searchsorted(path, np.arange(self.paths + 1)),
            path=path,
            node=self.piece[ends],
            first=first,
            place=np.where(inner, np.roll(self.piece[ends], 1), self.place[whole]),
            reward=np.where(np.diff(whole, append=-1) != 0, self.reward[whole], 0.0),
            key=self.key[whole],
            piece_step=step,
            whole=whole,
        )

    def of_tokens(self, name: str) -> Floats:
        """[T] float64 over the tokens of the batch: the column "logprob" or "entropy" of its trees, or an estimate.

        Raises:
            ValueError: when a tree lacks this estimate.
        """
        return np.concatenate([np.zeros(0), *(_column(each, name) for each in self.rewarded)]).astype(np.float64)

    def of_ends(self, name: str) -> Floats:
        """[P] float64: a critic head's value of the final state of each truncated path; nan for other paths.

        Raises:
            ValueError: when a tree with a truncated path lacks the values of this head.
        """
        columns = [_end_column(each, name) for each in self.rewarded]
        return np.concatenate([np.zeros(0), *columns])[self.leaf]


def path_view(rewarded: Sequence[Rewarded]) -> PathView:
    """Computes the path view of a batch."""
    trees = [each.tree for each in rewarded]
    offset = np.cumsum([0, *(tree.nodes for tree in trees)])
    shift = np.repeat(offset[:-1], np.diff(offset))
    kind, outcome, key = (join(rewarded, name) for name in ("kind", "outcome", "state_key"))
    parent = join(rewarded, "parent").astype(np.int64) + shift
    parent[offset[:-1]] = -1
    reward = np.concatenate([np.zeros(0), *(each.reward for each in rewarded)])
    ends = np.ones(len(parent), dtype=np.bool_)
    ends[parent[parent >= 0]] = False
    leaf = np.flatnonzero(ends & is_counted(outcome))
    nodes, length = _walk(parent, leaf)
    owner = np.repeat(np.arange(len(leaf)), length)
    acts = kind[nodes] == Kind.ACTION
    # The first node of a path is its root, which is no action.
    begins, ends = acts.copy(), acts.copy()
    begins[1:] &= ~acts[:-1]
    ends[:-1] &= ~acts[1:]
    turns = np.bincount(owner[begins], minlength=len(leaf))
    start = np.concatenate([[0], np.cumsum(turns)])
    # Rewards before the first action go to the first action.
    step = np.maximum(np.cumsum(begins) - 1, start[owner])
    acted = turns[owner] > 0
    tree = np.searchsorted(offset, leaf, side="right") - 1
    first = nodes[begins]
    return PathView(
        rewarded=tuple(rewarded),
        task=_tasks(rewarded)[tree],
        tree=tree,
        leaf=leaf,
        start=start,
        returns=sum_at(owner, reward[nodes], len(leaf)),
        path=owner[begins],
        node=nodes[ends],
        first=first,
        place=parent[first],
        reward=sum_at(step[acted], reward[nodes[acted]], len(first)),
        key=key[parent[first]].astype(np.int64),
        piece=nodes[acts],
        piece_step=step[acts],
        whole=np.arange(len(first)),
        offset=offset,
        through=np.bincount(nodes, minlength=len(parent)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathTokens:
    """The E action tokens of every turn of every path.

    Attributes:
        token: [E] int64, index of the token in the batch; trees lie end to end.
        step: [E] int64, ascending: the turn of `PathView`.
    """

    token: Ints
    step: Ints


def annotations(view: PathView, name: str) -> tuple[list[object], Ints]:
    """Returns the parser's annotation `name` of each distinct action, None without one, and [S] their indices."""
    infos, which = view.infos
    return [info.get(name) for info in infos], which


def annotation_spans(view: PathView) -> tuple[list[Spans], Ints]:
    """Returns the parser's spans of each distinct action, by annotation, and [S] their indices."""
    infos, which = view.infos
    return [cast("Spans", info.get("spans", {})) for info in infos], which


def join(rewarded: Sequence[Rewarded], name: str) -> NDArray[Any]:
    """Joins a column of all trees end to end."""
    return np.concatenate([np.zeros(0, dtype=DTYPES[name]), *(getattr(each.tree, name) for each in rewarded)])


def _walk(parent: Ints, leaf: Ints) -> tuple[Ints, Ints]:
    """Returns the nodes of each path, root first, end to end, and the number of nodes of each."""
    paths, here = np.arange(len(leaf)), leaf
    visited: list[tuple[Ints, Ints]] = []
    while len(here):
        visited.append((paths, here))
        above = parent[here]
        inside = above >= 0
        paths, here = paths[inside], above[inside]
    length = np.zeros(len(leaf), dtype=np.int64)
    for height, (path, _) in enumerate(visited):
        length[path] = height + 1
    end = np.cumsum(length)
    nodes = np.empty(int(end[-1]) if len(end) else 0, dtype=np.int64)
    for height, (path, node) in enumerate(visited):
        nodes[end[path] - 1 - height] = node
    return nodes, length


def _tasks(rewarded: Sequence[Rewarded]) -> Ints:
    """[trees] int64: number of the task of each tree, in order of first appearance."""
    numbers: dict[str, int] = {}
    return np.asarray([numbers.setdefault(each.tree.task.id, len(numbers)) for each in rewarded], dtype=np.int64)


def _end_column(rewarded: Rewarded, name: str) -> Floats:
    if name not in rewarded.end_values and np.any(rewarded.tree.outcome == Outcome.TRUNCATED):
        raise ValueError(
            f"task {rewarded.tree.task.id}: got a truncated path and no end value {name!r}, only "
            f"{sorted(rewarded.end_values)}; need a run with this critic head"
        )
    return rewarded.end_values.get(name, np.full(rewarded.tree.nodes, np.nan))


def _column(rewarded: Rewarded, name: str) -> Floats:
    if name in ("logprob", "entropy"):
        return getattr(rewarded.tree, name)
    if name not in rewarded.estimates:
        raise ValueError(
            f"task {rewarded.tree.task.id}: got no estimate {name!r}, only {sorted(rewarded.estimates)}; need a run "
            "with a critic or reference for it"
        )
    return rewarded.estimates[name]
