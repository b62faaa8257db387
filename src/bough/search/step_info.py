"""Evaluation and pruning by what the environment reports of a step."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.search.combine import EnvReturn
from bough.search.node import SearchNode
from bough.search.pieces import Evaluate
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoValue:
    """A number in `Step.info` of the last action, such as the share of the visible tests that a program passes.

    In a search with `success_value=None` it also evaluates the ends of paths.

    Attributes:
        name: The name of the number; True counts as 1.
        success: The value of a successful end; None for the number there, too.
        otherwise: Evaluates a state without the number.
    """

    name: str
    success: float | None = 1.0
    otherwise: Evaluate = EnvReturn()

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            ValueError: when what has the name is no number.
        """
        if self.success is not None and node.ended and node.success:
            return self.success
        found = tree.env_info(node).get(self.name)
        if found is None:
            return await self.otherwise(tree, node)
        if not isinstance(found, int | float):
            raise ValueError(f"InfoValue.name={self.name!r}: got {found!r} in Step.info; need the name of a number")
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
