"""Evaluation and pruning by what the environment reports of a step."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.search.node import SearchNode
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoValue:
    """A number in the info of the environment's last step, such as the similarity of a query to the gold query.

    A step without it has the environment's return of the path. In a search with `success_value=None` it also evaluates
    the ends of paths, where a success has the value 1.

    Attributes:
        name: The name of the number in `Step.info`.
    """

    name: str = "similarity"

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            ValueError: when what has the name is no number.
        """
        if node.ended and node.success:
            return 1.0
        found = tree.env_info(node).get(self.name, node.reward)
        if not isinstance(found, int | float):
            raise ValueError(f"InfoValue: got {self.name}={found!r} in the info of a step; need a number")
        return float(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneByInfo:
    """Prunes a node whose step the environment marks as false under a name; steps without a mark stay.

    Attributes:
        name: The name of the mark in `Step.info`.
    """

    name: str = "part"

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Prune the marked nodes."""
        for node in fresh:
            if not node.success and tree.env_info(node).get(self.name) is False:
                tree.prune(node)
