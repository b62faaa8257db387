"""A search that settles on what it carries out."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.search.node import SearchNode
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitToExecuted:
    """What was not carried out is given up.

    With `eager` and `lead=1` that leaves one path, of which no state is stepped twice: an agent that thinks before it
    acts, in an environment from which there is no way back.
    """

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        del fresh
        for node in tree.live():
            if node.at is None:
                tree.give_up(node)
