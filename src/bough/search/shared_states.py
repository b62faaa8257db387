"""The status of states, shared by the searches of one tree."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bough.rollout.cursor import Cursor
from bough.search.expand import Sample
from bough.search.node import SearchNode
from bough.search.pieces import Expand, Proposal
from bough.search.subgoal import present_subgoal
from bough.search.tree import SearchTree

Place: TypeAlias = tuple[str, str]
"""The text of a subgoal, and the key of a state."""


@dataclass(slots=True, kw_only=True)
class StateStatus:
    """The states of all searches of one tree.

    Attributes:
        solved: By place, the actions that lead from the state to the subgoal.
        failed: The places from which a search tried everything without success.
    """

    solved: dict[Place, tuple[str, ...]] = field(default_factory=dict[Place, tuple[str, ...]])
    failed: set[Place] = field(default_factory=set[Place])


def state_status(tree: SearchTree) -> StateStatus:
    """The status of the states of a tree."""
    return tree.notes.setdefault("status of states", StateStatus())


def record_status(tree: SearchTree, nodes: Sequence[SearchNode], found: SearchNode | None) -> None:
    """Store what a search of the present subgoal found.

    Args:
        tree: The tree.
        nodes: The root of the search, and its nodes.
        found: The node that reached the subgoal; None if the search found none.
    """
    status, goal = state_status(tree), present_subgoal(tree).text
    if found is None:
        if not tree.spent and all(node.closed for node in nodes):
            status.failed.update((goal, key) for node in nodes if (key := _key(node)))
        return
    path = found.path()[nodes[0].depth :]
    for place, node in enumerate(path[:-1]):
        if key := _key(node):
            status.solved.setdefault((goal, key), tuple(each.action for each in path[place + 1 :]))
            status.failed.discard((goal, key))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStates:
    """Equal states share their status over all searches of a tree (BFS-Prover-V2, arXiv 2509.06493).

    A later node with the state of an earlier one of the same search is pruned, even if its path is shorter. So is a
    node whose state an earlier search of the same subgoal tried in vain. Needs state keys. `KnownActions` uses the
    states that were solved.
    """

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Prune the others."""
        goal = present_subgoal(tree)
        first: dict[tuple[int, str], SearchNode] = tree.notes.setdefault("first states", {})
        first.setdefault((goal.number, _key(tree.root)), tree.root)
        for node in fresh:
            key = _key(node)
            if not key or node.pruned or node is tree.root:
                continue
            failed = (goal.text, key) in state_status(tree).failed
            if failed or first.setdefault((goal.number, key), node) is not node:
                tree.prune(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownActions:
    """The next action of a known solution of the state, where an earlier search of the same subgoal found one.

    The action is not sampled: it costs a step of the environment. Needs state keys.

    Attributes:
        expand: Proposes the actions of other states.
    """

    expand: Expand = field(default_factory=Sample)

    async def __call__(self, tree: SearchTree, node: SearchNode, times: int) -> Sequence[Proposal]:
        """Propose the action, or actions of `expand`."""
        known = state_status(tree).solved.get((present_subgoal(tree).text, _key(node)))
        if known:
            return [(tree.force_action(node, known[0]), 1.0)]
        return await self.expand(tree, node, times)


def _key(node: SearchNode) -> str:
    return node.at.state.key if isinstance(node.at, Cursor) else ""
