"""Pruning that commits a search to the executed actions."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.search.node import SearchNode
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitToExecuted:
    """Prunes all nodes that are not executed.

    With `eager` and `max_evaluated=1` one path is left, on which no state is stepped twice: for environments that
    can't return to an earlier state.
    """

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Prune the open nodes that are not executed."""
        del fresh
        for node in tree.live():
            if node.at is None:
                tree.prune(node)
