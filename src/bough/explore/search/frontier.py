"""Going on from what is open, wherever it is."""

from dataclasses import dataclass

from bough.explore.search import Score
from bough.explore.search.node import SearchNode
from bough.explore.search.score import Worth
from bough.explore.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The most promising of all open nodes, the first found of equals: best-first search.

    Attributes:
        by: How promising a node is.
        width: How many are taken at a time.
    """

    by: Score = Worth()
    width: int = 1

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"Best.width: got {self.width}; need at least 1")

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        return sorted(tree.live(), key=lambda node: (-self.by(node), node.number))[: self.width]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """All open nodes, level by level: with `Keep` a beam search, without a full tree."""

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        return tree.live()
