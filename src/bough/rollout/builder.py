"""The mutable tree: nodes are added during the rollout, and frozen once at the end."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bough.tree import (
    DTYPES,
    Floats,
    Kind,
    NodeValues,
    Outcome,
    RolloutCounts,
    Seat,
    Source,
    Task,
    Ternary,
    Tree,
    draft_columns,
    index_token_sets,
)


@dataclass(slots=True, kw_only=True)
class NodeDraft(NodeValues):
    """A mutable node; the fields are those of `Tree`. None means unknown.

    Attributes:
        branch: Distinguishes siblings and orders them.
        logprobs: Log-probability of each token [tokens], nats, where the policy sampled; else None.
        entropies: Entropy of each token [tokens], nats, where the policy sampled; else None.
        allowed: The set of tokens that a grammar allowed at each token [tokens], None for all; None without one.
        state: Key of the environment's state, "" when unknown.
        payoffs: `Step.payoffs` of an action.
        successes: `Step.successes` at the end of a path.
    """

    parent: int
    kind: Kind
    branch: int = 0
    tokens: Sequence[int] = ()
    logprobs: Sequence[float] | None = None
    entropies: Sequence[float] | None = None
    allowed: Sequence[bytes | None] | None = None
    outcome: Outcome = Outcome.OPEN
    env_reward: float = 0.0
    state: str = ""
    source: Source = Source.FORCED
    policy_version: int = -1
    payoffs: Mapping[str, float] = field(default_factory=dict[str, float])
    successes: Mapping[str, bool] = field(default_factory=dict[str, bool])
    info: dict[str, object] = field(default_factory=dict[str, object])


class TreeBuilder:
    """The nodes of one task's tree, in the order of their addition.

    Attributes:
        task: The task.
        seats: The names of the environment's seats; empty for one agent.
        seat: The seat for whose rewards and success explorers search; "" for one agent.
        nodes: The nodes.
        counts: Counts of the rollout so far.
    """

    def __init__(self, task: Task, seats: Sequence[str] = (), seat: str = "") -> None:
        self.task, self.seats, self.seat = task, tuple(seats), seat
        self.counts = RolloutCounts()
        self.nodes: list[NodeDraft] = []

    def add(self, node: NodeDraft) -> int:
        """Add a node and return its index, which children use as `parent`. Its fields may change until `done`."""
        if not -1 <= node.parent < len(self.nodes) or (node.parent < 0) != (not self.nodes):
            raise ValueError(
                f"TreeBuilder.add: got parent {node.parent} with {len(self.nodes)} nodes; need an existing node"
            )
        self.nodes.append(node)
        return len(self.nodes) - 1

    def split(self, number: int, at: int) -> int:
        """Split an `ACTION` node before its token `at`, so that a branch can start after its first tokens.

        Returns:
            The index of a new node, which holds the first tokens. The other tokens, the columns and info of the action
            and its descendants stay at `number`, below the new node, so existing references to `number` stay valid.
        """
        node = self.nodes[number]
        if node.kind is not Kind.ACTION or not 0 < at < len(node.tokens):
            raise ValueError(
                f"TreeBuilder.split: got token {at} of a node of kind {node.kind.name} with {len(node.tokens)} tokens; "
                "need an ACTION, and at least one token on either side"
            )
        first = NodeDraft(
            parent=node.parent,
            kind=Kind.ACTION,
            branch=node.branch,
            tokens=node.tokens[:at],
            logprobs=None if node.logprobs is None else node.logprobs[:at],
            entropies=None if node.entropies is None else node.entropies[:at],
            allowed=None if node.allowed is None else node.allowed[:at],
            source=node.source,
            policy_version=node.policy_version,
            seat=node.seat,
        )
        self.nodes.append(first)
        node.tokens, node.parent, node.branch = node.tokens[at:], len(self.nodes) - 1, 0
        node.logprobs = None if node.logprobs is None else node.logprobs[at:]
        node.entropies = None if node.entropies is None else node.entropies[at:]
        node.allowed = None if node.allowed is None else node.allowed[at:]
        return node.parent

    def reward(self, action: int, last: int) -> float:
        """The reward of `seat`, from node `action` down to its descendant `last`."""
        total, number = 0.0, last
        while number != action:
            total += _payoff(self.nodes[number], self.seat)
            number = self.nodes[number].parent
        return total + _payoff(self.nodes[action], self.seat)

    def solved(self, last: int) -> bool:
        """Whether `seat` has succeeded at a node."""
        end = self.nodes[last]
        return end.successes.get(self.seat, end.success) is True

    def done(self) -> Tree:
        """Freeze the tree. Nodes are sorted depth first and siblings by branch, whatever the order of completion."""
        order = self._order()
        index = {-1: -1} | {old: new for new, old in enumerate(order)}
        nodes = [self.nodes[old] for old in order]
        allowed, sets = index_token_sets((node.allowed, len(node.tokens)) for node in nodes)
        columns = {
            "parent": [index[node.parent] for node in nodes],
            "kind": [node.kind for node in nodes],
            "span": np.cumsum([0, *(len(node.tokens) for node in nodes)]),
            "token": [token for node in nodes for token in node.tokens],
            "logprob": _per_token(nodes, [node.logprobs for node in nodes]),
            "entropy": _per_token(nodes, [node.entropies for node in nodes]),
            "allowed": allowed,
            "outcome": [node.outcome for node in nodes],
            "env_reward": [node.env_reward for node in nodes],
            "state_key": [hash_key(node.state) for node in nodes],
            "source": [node.source for node in nodes],
            "policy_version": [node.policy_version for node in nodes],
            **draft_columns(nodes),
        }
        arrays: dict[str, Any] = {name: np.asarray(column).astype(DTYPES[name]) for name, column in columns.items()}
        return Tree(
            task=self.task,
            counts=self.counts,
            info=tuple(node.info for node in nodes),
            seats=tuple(_seat(name, nodes) for name in self.seats),
            allowed_sets=sets,
            **arrays,
        )

    def _order(self) -> list[int]:
        children: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            if node.parent >= 0:
                children[node.parent].append(number)
        order: list[int] = []
        stack = [0] if self.nodes else []
        while stack:
            number = stack.pop()
            order.append(number)
            stack.extend(sorted(children[number], key=lambda child: self.nodes[child].branch, reverse=True))
        return order


def _per_token(nodes: Sequence[NodeDraft], values: Sequence[Sequence[float] | None]) -> Floats:
    """[T] float64, nan where a node has no values."""
    parts = [
        np.full(len(node.tokens), np.nan) if given is None else np.asarray(given, dtype=np.float64)
        for node, given in zip(nodes, values, strict=True)
    ]
    return np.concatenate(parts)


def _seat(name: str, nodes: Sequence[NodeDraft]) -> Seat:
    """The columns of a seat."""
    payoff = [_payoff(node, name) for node in nodes]
    success = [node.successes.get(name, node.success) for node in nodes]
    known = [Ternary.UNKNOWN if each is None else each for each in success]
    return Seat(name=name, payoff=np.asarray(payoff, dtype=np.float64), success=np.asarray(known, dtype=np.int8))


def _payoff(node: NodeDraft, seat: str) -> float:
    return node.payoffs.get(seat, 0.0) if node.payoffs else node.env_reward


def hash_key(key: str) -> int:
    """64-bit signed hash of a state key; 0 for an unknown one."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big", signed=True) if key else 0
