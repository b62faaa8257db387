"""Trees from a list of nodes, for tests and examples."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bough.tree.allowed_sets import index_token_sets
from bough.tree.columns import draft_columns
from bough.tree.marks import Kind, Outcome, Source
from bough.tree.node_values import NodeValues
from bough.tree.seat import Seat
from bough.tree.task import Task
from bough.tree.tree import DTYPES, Floats, Tree


@dataclass(slots=True, kw_only=True)
class TreeNode(NodeValues):
    """One node of `build`, with the columns of `Tree`.

    Attributes:
        parent: Index of the parent among the nodes; -1 for the first.
        kind: The kind of the node.
        tokens: Vocabulary ids.
        logprob: Log-probability of each token, or of all of them; used where the policy sampled. The default, -0.5 for
            each, is a stand-in for hand-made cases: give the real ones where a loss reads them.
        entropy: Nats, of each token, or of all of them; used where the policy sampled.
        allowed: The set of tokens that a grammar allowed at each token, as in `Tree.allowed_sets`; None without one.
        outcome: Outcome of the path that ends at this node; `OPEN` at inner nodes.
        env_reward: Reward of the environment for the action.
        state_key: Hash of the state that the node shows; 0 when unknown.
        source: Source of the tokens; None means the policy at an `ACTION`, and `FORCED` elsewhere.
        info: Texts and provenance.
    """

    parent: int
    kind: Kind
    tokens: Sequence[int] = (1,)
    logprob: float | Sequence[float] = -0.5
    entropy: float | Sequence[float] = math.nan
    allowed: Sequence[bytes] | None = None
    outcome: Outcome = Outcome.OPEN
    env_reward: float = 0.0
    state_key: int = 0
    source: Source | None = None
    info: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def written_by(self) -> Source:
        """The source, with the default filled in."""
        if self.source is not None:
            return self.source
        return Source.SAMPLED if self.kind == Kind.ACTION else Source.FORCED


def build(*nodes: TreeNode, task: Task | str = "task", policy_version: int = 0, seats: Sequence[Seat] = ()) -> Tree:
    """Builds a tree of the given nodes, in depth-first pre-order.

    Two responses to one prompt, the first with a reward:

        build(
            TreeNode(parent=-1, kind=Kind.PROMPT, tokens=[7, 8]),
            TreeNode(parent=0, kind=Kind.ACTION, tokens=[1, 2], env_reward=1.0, outcome=Outcome.TERMINATED),
            TreeNode(parent=0, kind=Kind.ACTION, tokens=[3], outcome=Outcome.TERMINATED),
        )

    Args:
        nodes: The root first, every node followed by all its descendants.
        task: The task, or its id.
        policy_version: Number of weight updates of the sampling policy.
        seats: The seats of an episode with several agents.

    Raises:
        ValueError: when there is no node, a parent does not come before its child, `kind` is no `Kind`, an action has
            no tokens, the number of log-probabilities or entropies of a node differs from that of its tokens, or the
            columns do not fit together (see `Tree`).
    """
    _check_nodes(nodes)
    sampled = [node.written_by == Source.SAMPLED for node in nodes]
    allowed, sets = index_token_sets((node.allowed, len(node.tokens)) for node in nodes)
    columns: dict[str, object] = {
        "parent": [node.parent for node in nodes],
        "kind": [node.kind for node in nodes],
        "span": np.cumsum([0, *(len(node.tokens) for node in nodes)]),
        "token": [token for node in nodes for token in node.tokens],
        "logprob": _of_tokens("logprob", nodes, [node.logprob for node in nodes], sampled),
        "entropy": _of_tokens("entropy", nodes, [node.entropy for node in nodes], sampled),
        "allowed": allowed,
        "outcome": [node.outcome for node in nodes],
        "env_reward": [node.env_reward for node in nodes],
        "state_key": [node.state_key for node in nodes],
        "source": [node.written_by for node in nodes],
        "policy_version": [policy_version if drawn else -1 for drawn in sampled],
        **draft_columns(nodes),
    }
    arrays: dict[str, NDArray[np.generic]] = {
        name: np.asarray(column).astype(DTYPES[name]) for name, column in columns.items()
    }
    whole = Task(id=task) if isinstance(task, str) else task
    infos = tuple(node.info for node in nodes)
    return Tree(task=whole, info=infos, seats=tuple(seats), allowed_sets=sets, **arrays)  # pyright: ignore[reportArgumentType]


def _check_nodes(nodes: Sequence[TreeNode]) -> None:
    """Check each node by itself.

    Raises:
        ValueError: names the first node that does not fit.
    """
    if not nodes:
        raise ValueError("build: got no nodes; need the root first, TreeNode(parent=-1, kind=Kind.PROMPT, ...)")
    for place, node in enumerate(nodes):
        where = f"build: node {place}"
        if not isinstance(cast("object", node.kind), Kind):
            raise ValueError(
                f"{where}: got kind={node.kind!r}; need one of {', '.join(f'Kind.{name}' for name in Kind.__members__)}"
            )
        if place and not 0 <= node.parent < place:
            raise ValueError(
                f"{where}: got parent={node.parent}; need an earlier node, 0 to {place - 1}: list each parent before "
                "its children"
            )


def _of_tokens(
    name: str, nodes: Sequence[TreeNode], values: Sequence[float | Sequence[float]], sampled: Sequence[bool]
) -> Floats:
    """[T]: a column of tokens, nan where the policy did not sample."""
    parts: list[Floats] = [np.zeros(0)]
    for place, (node, value, drawn) in enumerate(zip(nodes, values, sampled, strict=True)):
        count = len(node.tokens)
        given = np.asarray(value, dtype=np.float64)
        if given.ndim and given.shape != (count,):
            raise ValueError(f"build: got {len(given)} numbers in {name} of node {place}; need {count}, one a token")
        parts.append(np.broadcast_to(given, count) if drawn else np.full(count, np.nan))
    return np.concatenate(parts)
