"""What a search gives up."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.explore.cursor import Cursor
from bough.explore.search import Score
from bough.explore.search.node import SearchNode
from bough.explore.search.score import Worth
from bough.explore.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Only the most promising of the open nodes, the first found of equals: the beam of a beam search.

    Attributes:
        width: How many.
        by: How promising a node is.
        shrink: Whether every path that has ended leaves the beam narrower by one (AlphaMath, arXiv 2405.03553).
    """

    width: int = 4
    by: Score = Worth()
    shrink: bool = False

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"Keep.width: got {self.width}; need at least 1")

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        del fresh
        ended = sum(node.ended for node in tree.nodes) if self.shrink else 0
        ranked = sorted(tree.live(), key=lambda node: (-self.by(node), node.number))
        for node in ranked[max(0, self.width - ended) :]:
            tree.give_up(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One way to each state, the shortest, of equals the first found; needs an environment that names its states.

    A way that comes later and is no shorter is given up; of one that is shorter, the earlier is given up with all that
    is below it and not in the shorter one.
    """

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        del fresh
        first: dict[str, SearchNode] = {}
        for node in tree.nodes:
            key = node.at.state.key if isinstance(node.at, Cursor) else ""
            if node.pruned or not key:
                continue
            known = first.setdefault(key, node)
            if known is not node:
                worse, better = (known, node) if node.depth < known.depth else (node, known)
                first[key] = better
                tree.give_up(worse)
