"""The path view of a batch: every counted path, turn by turn, as columns that credit rules compute on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bough.tree.marks import COUNTED, Kind, Outcome
from bough.tree.stages import Rewarded
from bough.tree.tree import DTYPES, Bools, Floats, Info, Ints
from bough.tree.walk import sum_at


# Without slots, so that what many rules ask for is computed once.
@dataclass(frozen=True, kw_only=True, eq=False)
class PathView:
    """P counted paths of a batch of trees, and their S turns. A turn that paths share stands here once for each.

    Paths stand in the order of the trees and of `counted(tree)`; the turns of a path lie together, first to last. Nodes
    are numbered over the batch: those of the second tree come after all of the first. A path of two turns that share
    the first with a path of one more:

        path  0 0 1 1      turn  0 1 0 1      node  1 3 1 5      reward  0 1 0 0

    A turn may consist of several `ACTION` nodes in a row, its pieces. It has one place, one state and one reward. A
    path whose first turn is nodes 1 and 2, and a path that continues from node 1 with node 3 instead:

        path  0 1          first  1 1         node  2 3          piece  1 2 1 3      piece_step  0 0 1 1

    Attributes:
        rewarded: The trees.
        task: [P] int64, which task a path is of: 0 for the first to appear, and so on.
        tree: [P] int64, which tree.
        leaf: [P] int64, the node it ends with.
        start: [P + 1] int64; the turns of path p are start[p] : start[p + 1].
        returns: [P] float64, the undiscounted return.
        path: [S] int64, whose turn it is.
        node: [S] int64, its last `ACTION` node, whose info is that of the whole action.
        first: [S] int64, its first `ACTION` node; `node`, unless the turn was written in pieces.
        place: [S] int64, the node that it was acted from: the parent of its first node.
        reward: [S] float64, what was paid from this action up to the next.
        key: [S] int64, the state that it was acted in, as in `Tree.state_key`; 0 when unknown.
        piece: [Q] int64, the `ACTION` nodes of all turns, turn by turn.
        piece_step: [Q] int64, ascending: the turn of each piece.
        whole: [S] int64, ascending: the number of the turn; steps share a number in `by_node` and `by_fork`.
        offset: [trees + 1] int64; the nodes of tree i are offset[i] : offset[i + 1].
        through: [N] int64, how many counted paths run through each node of the batch.
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
        """[P] int64: how many turns each path has."""
        return np.diff(self.start)

    @property
    def last(self) -> Bools:
        """[S] bool: whether a turn is the last of its path."""
        return np.arange(len(self.path)) == self.start[self.path + 1] - 1

    @cached_property
    def lengths(self) -> Ints:
        """[N] int64: how many tokens each node adds."""
        spans = [np.diff(each.tree.span) for each in self.rewarded]
        return np.concatenate([np.zeros(0, dtype=np.int64), *spans])

    @cached_property
    def tokens(self) -> Ints:
        """[S] int64: the number of tokens of each turn."""
        return np.bincount(self.piece_step, self.lengths[self.piece], len(self.path)).astype(np.int64)

    @cached_property
    def sampled(self) -> Bools:
        """[T] bool: which tokens of the batch the policy sampled."""
        return ~np.isnan(join(self.rewarded, "logprob"))

    @cached_property
    def shared(self) -> bool:
        """Whether some turn, or its first piece, is on several paths."""
        return bool(np.any(self.through[self.first] > 1))

    @cached_property
    def infos(self) -> tuple[list[Info], Ints]:
        """The infos of turns, those of their last `ACTION` nodes, each once, and [S] which of them a turn has."""
        everything = chain.from_iterable(each.tree.info for each in self.rewarded)
        acts = np.zeros(len(self.through), dtype=np.bool_)
        acts[self.node] = True
        return list(compress(everything, acts.tolist())), (np.cumsum(acts) - 1)[self.node]

    @cached_property
    def path_tokens(self) -> "PathTokens":
        """The tokens of every turn, in the order they were written."""
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
        """[S] int64: the start of each turn's tokens in `words`."""
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
        # Paths only fork, never merge, so an equal count means the same paths.
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
            ValueError: when a tree has no such estimate.
        """
        return np.concatenate([np.zeros(0), *(_column(each, name) for each in self.rewarded)]).astype(np.float64)

    def of_ends(self, name: str) -> Floats:
        """[P] float64: a critic head's value of the final state of each truncated path; nan for other paths.

        Raises:
            ValueError: when a tree with a truncated path has no values of this head.
        """
        columns = [_end_column(each, name) for each in self.rewarded]
        return np.concatenate([np.zeros(0), *columns])[self.leaf]


def path_view(rewarded: Sequence[Rewarded]) -> PathView:
    """The path view of a batch."""
    trees = [each.tree for each in rewarded]
    offset = np.cumsum([0, *(tree.nodes for tree in trees)])
    shift = np.repeat(offset[:-1], np.diff(offset))
    kind, outcome, key = (join(rewarded, name) for name in ("kind", "outcome", "state_key"))
    parent = join(rewarded, "parent").astype(np.int64) + shift
    parent[offset[:-1]] = -1
    reward = np.concatenate([np.zeros(0), *(each.reward for each in rewarded)])
    ends = np.ones(len(parent), dtype=np.bool_)
    ends[parent[parent >= 0]] = False
    leaf = np.flatnonzero(ends & np.isin(outcome, COUNTED))
    walked, length = _walk(parent, leaf)
    owner = np.repeat(np.arange(len(leaf)), length)
    acts = kind[walked] == Kind.ACTION
    # The first node of a path is its root, which is no action.
    begins, ends = acts.copy(), acts.copy()
    begins[1:] &= ~acts[:-1]
    ends[:-1] &= ~acts[1:]
    turns = np.bincount(owner[begins], minlength=len(leaf))
    start = np.concatenate([[0], np.cumsum(turns)])
    # What is paid before the first action goes to the first.
    step = np.maximum(np.cumsum(begins) - 1, start[owner])
    acted = turns[owner] > 0
    tree = np.searchsorted(offset, leaf, side="right") - 1
    first = walked[begins]
    return PathView(
        rewarded=tuple(rewarded),
        task=_tasks(rewarded)[tree],
        tree=tree,
        leaf=leaf,
        start=start,
        returns=sum_at(owner, reward[walked], len(leaf)),
        path=owner[begins],
        node=walked[ends],
        first=first,
        place=parent[first],
        reward=sum_at(step[acted], reward[walked[acted]], len(first)),
        key=key[parent[first]].astype(np.int64),
        piece=walked[acts],
        piece_step=step[acts],
        whole=np.arange(len(first)),
        offset=offset,
        through=np.bincount(walked, minlength=len(parent)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathTokens:
    """The E action tokens of every turn of every path: the path view, token by token.

    Attributes:
        token: [E] int64, which token of the batch; those of the second tree come after all of the first.
        step: [E] int64, ascending: which turn of `Steps`.
    """

    token: Ints
    step: Ints


def turn_info(view: PathView, name: str) -> list[object]:
    """S values: the entry `name` in the `info` of each turn, None where it is missing."""
    said, which = action_info(view, name)
    return [said[act] for act in which.tolist()]


def action_info(view: PathView, name: str, default: object = None) -> tuple[list[object], Ints]:
    """What the infos of the `ACTION` nodes on paths say under `name`, each once, and [S] which of them a turn has."""
    infos, which = view.infos
    return [info.get(name, default) for info in infos], which


def join(rewarded: Sequence[Rewarded], name: str) -> NDArray[Any]:
    """A column of all trees, end to end."""
    return np.concatenate([np.zeros(0, dtype=DTYPES[name]), *(getattr(each.tree, name) for each in rewarded)])


def _walk(parent: Ints, leaf: Ints) -> tuple[Ints, Ints]:
    """The nodes of each path, root first, laid end to end, and how many they are."""
    climbers, here = np.arange(len(leaf)), leaf
    visited: list[tuple[Ints, Ints]] = []
    while len(here):
        visited.append((climbers, here))
        above = parent[here]
        goes_on = above >= 0
        climbers, here = climbers[goes_on], above[goes_on]
    length = np.zeros(len(leaf), dtype=np.int64)
    for height, (climber, _) in enumerate(visited):
        length[climber] = height + 1
    end = np.cumsum(length)
    walked = np.empty(int(end[-1]) if len(end) else 0, dtype=np.int64)
    for height, (climber, node) in enumerate(visited):
        walked[end[climber] - 1 - height] = node
    return walked, length


def _tasks(rewarded: Sequence[Rewarded]) -> Ints:
    """[trees] int64: number of the task of each tree, in order of first appearance."""
    numbers: dict[str, int] = {}
    return np.asarray([numbers.setdefault(each.tree.task.id, len(numbers)) for each in rewarded], dtype=np.int64)


def _end_column(rewarded: Rewarded, name: str) -> Floats:
    if name not in rewarded.end_values and np.any(rewarded.tree.outcome == Outcome.TRUNCATED):
        raise ValueError(
            f"task {rewarded.tree.task.id}: got a truncated path and no end value {name!r}, only "
            f"{sorted(rewarded.end_values)}; need a run whose critic gives it"
        )
    return rewarded.end_values.get(name, np.full(rewarded.tree.nodes, np.nan))


def _column(rewarded: Rewarded, name: str) -> Floats:
    if name in ("logprob", "entropy"):
        return getattr(rewarded.tree, name)
    if name not in rewarded.estimates:
        raise ValueError(
            f"task {rewarded.tree.task.id}: got no estimate {name!r}, only {sorted(rewarded.estimates)}; need a run "
            "whose critic or reference gives it"
        )
    return rewarded.estimates[name]
