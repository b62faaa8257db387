"""Searching, settling on what looks best, and searching again from there."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from bough.rollout.rollout import Rollout
from bough.search import Score
from bough.search.best_first import best_first
from bough.search.node import SearchNode
from bough.search.score import QValue
from bough.search.search import Search
from bough.search.tree import SearchTree, best
from bough.tree.needs import FORKS, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Search, settle on the best way, search on from its end (Tree Search for LM Agents, arXiv 2407.01476); forks.

    One search has the `rounds` of its settings. Then the way to the best place found, the end of a path before any
    other, is settled, and all beside it is given up; with to="action" the first action alone is (MCTS-DPO, 2405.00451),
    the best of the children by a score. What is known below is kept; the paper begins anew. It is over when a path that
    ended is settled, nothing is open, a budget runs out, or after `moves`. The answer lies on the way that was settled.

    Attributes:
        search: How to search.
        to: What is settled: the whole way to the best place, or one action.
        by: Which child is best, for actions: what was found there, or `VisitCount`; of equals the first found.
        moves: Most searches.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({FORKS})

    search: Search = field(default_factory=best_first)
    to: Literal["way", "action"] = "way"
    by: Score = QValue()
    moves: int = 5

    def __post_init__(self) -> None:
        if self.moves < 1:
            raise ValueError(f"Commit.moves: got {self.moves}; need at least 1")

    async def __call__(self, rollout: Rollout) -> None:
        """Grow the tree."""
        tree = SearchTree(rollout, await rollout.root(), won=self.search.won, lost=self.search.lost)
        try:
            await self.go(tree)
        finally:
            tree.conclude(anywhere=self.search.anywhere)

    async def go(self, tree: SearchTree) -> None:
        """Search below the root of a tree, which goes down."""
        for _ in range(self.moves):
            await self.search.go(tree)
            there = self._next(tree)
            if there is None:
                break
            tree.settle(there)
            if there.closed or tree.spent:
                break

    def _next(self, tree: SearchTree) -> SearchNode | None:
        """What to settle on; None where the search found nothing."""
        children = [child for child in tree.root.children if child.visits]
        if self.to == "action":
            return max(children, key=lambda child: (self.by(child), -child.number), default=None)
        below: list[SearchNode] = []
        more = list(tree.root.children)
        while more:
            below += more
            more = [child for node in more for child in node.children]
        return best(node for node in below if node.ended) or best(below)
