"""The trajectory tree: episodes of one task that share a prompt and branch at turns, as columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bough.tree.allowed_sets import TokenSets, allows, no_token_sets
from bough.tree.appraisal import Appraisal
from bough.tree.column import Column, column, columns_of
from bough.tree.counts import RolloutCounts
from bough.tree.marks import Kind, Outcome, Source, Ternary, TruncatedBy
from bough.tree.seat import Seat, check_seats
from bough.tree.task import Task

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.signedinteger]
Floats: TypeAlias = NDArray[np.floating]
Info: TypeAlias = Mapping[str, object]


@dataclass(slots=True, eq=False)
class Derived:
    """The columns that pieces read from one `info`, each computed at its first use; copies and pickles have none yet.

    Attributes:
        info: What they are read from.
        columns: By `InfoColumn`.
    """

    info: tuple[Info, ...]
    columns: dict[object, object] = field(default_factory=dict[object, object], init=False)

    def __reduce__(self) -> "tuple[type[Derived], tuple[tuple[Info, ...]]]":
        return Derived, (self.info,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """A frozen trajectory tree with N nodes and T tokens. Each token is stored once; a branch is a path from the root.

    Nodes stand in depth-first pre-order: node 0 is the `PROMPT`, and every parent comes before its children.
    Two chains of one task, the first of which succeeds in one turn:

        node  parent  kind         span     outcome     env_reward
        0     -1      PROMPT       0:5      OPEN        0
        1      0      ACTION       5:7      OPEN        1.0
        2      1      OBSERVATION  7:9      TERMINATED  0
        3      0      ACTION       9:11     TRUNCATED   0

    A column is declared by its field here: files, checkpoints, checks, views and cut trees follow. One that a node may
    lack is a field of `NodeValues` too, by which it is written.

    Attributes:
        task: The task.
        parent: [N] int32; -1 at the root.
        kind: [N] int8, a `Kind`.
        span: [N + 1] int64; the tokens of node i are `token[span[i] : span[i + 1]]`.
        token: [T] int32, vocabulary ids.
        logprob: [T] float32, natural log of the probability under the sampling distribution (temperature and top-p
            included, among the allowed tokens); nan where not sampled.
        entropy: [T] float32, nats, of that distribution; nan where not sampled or not requested.
        allowed: [T] int32, index in `allowed_sets` of the tokens that a grammar allowed; -1 where every token was.
        outcome: [N] int8, an `Outcome`; other than `OPEN` only where a path ends.
        env_reward: [N] float64, the environment's reward for the action of an `ACTION` node, with seats that of the
            seat that acted; 0 elsewhere, except in a `seat_view`: a node has the payoffs for other seats' actions
            before it.
        state_key: [N] int64, hash of the environment state that a `PROMPT`, `OBSERVATION` or `EDIT` node shows;
            equal keys mean the same state, 0 means unknown.
        source: [N] int8, a `Source`.
        policy_version: [N] int32, number of weight updates of the sampling policy; -1 where not sampled.
        success: [N] int8, a `Ternary`: whether the environment marks the task as solved at the end of a path;
            before the end YES where it is already solved, else unknown.
        valid: [N] int8, a `Ternary`: whether the environment recognised the action; unknown where none was executed.
        well_formed: [N] int8, a `Ternary`: whether the action has the parser's format.
        cut_off: [N] int8, a `Ternary`: whether a completion ended at a token limit; unknown where none was generated.
        truncated_by: [N] int8, a `TruncatedBy`; other than `NOTHING` only at the end of a truncated path.
        chain: [N] int32, the explorer's number of the chain that a path's first action belongs to; -1 elsewhere.
        answer: [N] bool, the result of a search: the end of a path, or the best state when no path ended.
        value: [N] float64, the final value of a search for the state after an action, and for the root; else nan.
        rating: [N] float64, the rating of an action before its execution; nan without one.
        visits: [N] int32, visit count in a search of the state after an action, and of the root; 0 elsewhere.
        seat: [N] int8, index in `seats` of the seat that wrote an `ACTION` node or reads any other; 0 without seats.
        info: N small mappings of values that JSON can write, for people: texts, tool calls, decisions, provenance.
            Code reads its texts with the functions of `bough.tree.texts`.
        counts: Counts of the rollout.
        replayed: Whether the tree was sampled in an earlier step; its statistics do not describe the current policy.
        appraisals: The columns of appraisers, by name; empty in a run without any.
        seats: The seats of an episode with several agents, whose contexts are separate texts: the context of a node has
            the nodes of its own seat. Everything from rewards to batches works on one seat's view (`seat_view`).
        allowed_sets: [K, B] uint8, sets of tokens: token t is bit t % 8 of byte t // 8.
        derived: The columns that pieces read from `info` (`InfoColumn`); empty in a tree with another `info`.
        subtree_end: [N] int64, the node after the last descendant of each node; computed from `parent`.

    `success`, `valid`, `well_formed`, `cut_off`, `value`, `rating` and `visits` of an action of several pieces are at
    its last node.

    Raises:
        ValueError: when the columns do not fit together.
    """

    task: Task
    parent: Ints = column(np.int32)
    kind: Ints = column(np.int8)
    span: Ints = column(np.int64, per="offset")
    token: Ints = column(np.int32, per="token")
    logprob: Floats = column(np.float32, per="token")
    entropy: Floats = column(np.float32, per="token")
    allowed: Ints = column(np.int32, per="token")
    outcome: Ints = column(np.int8)
    env_reward: Floats = column(np.float64)
    state_key: Ints = column(np.int64)
    source: Ints = column(np.int8)
    policy_version: Ints = column(np.int32)
    success: Ints = column(np.int8, unknown=Ternary.UNKNOWN)
    valid: Ints = column(np.int8, unknown=Ternary.UNKNOWN, of_action=True)
    well_formed: Ints = column(np.int8, unknown=Ternary.UNKNOWN, of_action=True)
    cut_off: Ints = column(np.int8, unknown=Ternary.UNKNOWN, of_action=True)
    truncated_by: Ints = column(np.int8, unknown=TruncatedBy.NOTHING)
    chain: Ints = column(np.int32, unknown=-1)
    answer: Bools = column(np.bool_, unknown=False)
    value: Floats = column(np.float64, unknown=np.nan, of_action=True)
    rating: Floats = column(np.float64, unknown=np.nan, of_action=True)
    visits: Ints = column(np.int32, unknown=0, of_action=True)
    seat: Ints = column(np.int8, unknown=0)
    info: tuple[Info, ...]
    counts: RolloutCounts = field(default_factory=RolloutCounts)
    replayed: bool = False
    appraisals: Mapping[str, Appraisal] = field(default_factory=dict[str, Appraisal])
    seats: tuple[Seat, ...] = ()
    allowed_sets: TokenSets = field(default_factory=no_token_sets)
    derived: Derived = field(default_factory=lambda: Derived(()), repr=False)
    subtree_end: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        nodes = len(self.parent)
        lengths = {"node": nodes, "token": len(self.token), "offset": nodes + 1}
        for name, declared in COLUMNS.items():
            array: NDArray[np.generic] = getattr(self, name)
            want = lengths[declared.per]
            if array.dtype != declared.dtype or array.shape != (want,):
                raise ValueError(
                    f"Tree.{name}: got {array.dtype} of shape {array.shape}; need {declared.dtype} of shape ({want},)"
                )
            array.setflags(write=False)
        if len(self.info) != nodes:
            raise ValueError(f"Tree.info: got {len(self.info)} mappings; need one for each of the {nodes} nodes")
        self._check_shape()
        self._check_marks()
        check_seats(self.seats, self.seat)
        if self.derived.info is not self.info:
            object.__setattr__(self, "derived", Derived(self.info))

    def _check_shape(self) -> None:
        nodes = len(self.parent)
        if nodes == 0 or self.parent[0] != -1 or self.kind[0] != Kind.PROMPT:
            raise ValueError("Tree: got no PROMPT at node 0 with parent -1; need exactly one root, first")
        later = np.arange(1, nodes)
        if np.any(self.parent[1:] >= later) or np.any(self.parent[1:] < 0):
            raise ValueError("Tree.parent: got a parent at or after its child; need parents first")
        if self.span[0] != 0 or self.span[-1] != len(self.token) or np.any(np.diff(self.span) < 0):
            raise ValueError("Tree.span: got offsets that do not cover the tokens; need 0 <= ... <= T, ascending")
        walk: list[int] = []  # from the root to the node before
        end = [nodes] * nodes
        for node, parent in enumerate(self.parent.tolist()):
            while walk and walk[-1] != parent:
                end[walk.pop()] = node
            if node and not walk:
                raise ValueError(
                    f"Tree.parent: got node {node} with parent {parent}, whose subtree had already ended; need "
                    "depth-first pre-order, every node followed by all its descendants"
                )
            walk.append(node)
        object.__setattr__(self, "subtree_end", np.asarray(end, dtype=np.int64))
        self.subtree_end.setflags(write=False)

    def _check_marks(self) -> None:
        sampled = np.repeat((self.kind == Kind.ACTION) & (self.source == Source.SAMPLED), np.diff(self.span))
        if np.any(np.isfinite(self.logprob) != sampled) or np.any(np.isnan(self.logprob) == sampled):
            raise ValueError("Tree.logprob: need a finite number at every sampled token and nan at every other one")
        if not -1 <= self.allowed.min(initial=-1) <= self.allowed.max(initial=-1) < len(self.allowed_sets):
            raise ValueError(
                f"Tree.allowed: got indices from {self.allowed.min()} to {self.allowed.max()}; need -1, or that of one "
                f"of the {len(self.allowed_sets)} sets"
            )
        if not allows(self.allowed_sets, self.allowed, self.token).all():
            raise ValueError("Tree.allowed: got a token that its own set does not have")
        inner = np.zeros(len(self.parent), dtype=np.bool_)
        inner[self.parent[1:]] = True
        if np.any(self.outcome[inner] != Outcome.OPEN):
            raise ValueError("Tree.outcome: got an ended node with children; need OPEN everywhere but at the leaves")

    def success_of(self, seat: str) -> Ints:
        """[N] int8, a `Ternary`: the success of a seat; `success` in a tree for one agent."""
        return next((each.success for each in self.seats if each.name == seat), self.success)

    @property
    def nodes(self) -> int:
        """N, the number of nodes."""
        return len(self.parent)

    @property
    def sampled(self) -> Bools:
        """[T] bool: the tokens that the policy sampled."""
        return ~np.isnan(self.logprob)

    def tokens_of(self, node: int) -> Ints:
        """The tokens that `node` adds, [span[node + 1] - span[node]] int32."""
        return self.token[self.span[node] : self.span[node + 1]]

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """The numeric columns by name, as in `COLUMNS`."""
        return {name: getattr(self, name) for name in COLUMNS}

    def equals(self, other: "Tree") -> bool:
        """Whether both trees are the same, bit for bit (nan equals nan)."""
        return (
            self.task == other.task
            and self.info == other.info
            and self.counts == other.counts
            and self.replayed == other.replayed
            and self.appraisals.keys() == other.appraisals.keys()
            and all(each.equals(other.appraisals[name]) for name, each in self.appraisals.items())
            and [each.record() for each in self.seats] == [each.record() for each in other.seats]
            and np.array_equal(self.allowed_sets, other.allowed_sets)
            and all(
                np.array_equal(column, other.columns()[name], equal_nan=column.dtype.kind == "f")
                for name, column in self.columns().items()
            )
        )


COLUMNS: Mapping[str, Column] = columns_of(Tree)
"""Every column of a tree, in the order of the fields of `Tree`, which declares it."""

DTYPES: Mapping[str, np.dtype[np.generic]] = {name: each.dtype for name, each in COLUMNS.items()}
"""The dtype of every column."""

UNKNOWN_VALUES: Mapping[str, float] = {name: each.unknown for name, each in COLUMNS.items() if each.unknown is not None}
"""The columns that a node may lack (`NodeValues`), with their values where unknown."""
