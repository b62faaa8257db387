"""Going on from what is open, wherever it is."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bough.search import FixedScore, Score, Select
from bough.search.node import SearchNode
from bough.search.score import NodeValue, RatedValue
from bough.search.tree import SearchTree

Rank: TypeAlias = tuple[float, int, int]
"""The lowest comes first: minus the score, minus the depth where that counts, the number."""


@dataclass(slots=True, kw_only=True)
class Heap:
    """Open nodes by rank, for scores that stay what they are.

    Attributes:
        ranked: A heap; those that are not open any more are dropped when they come up.
        known: How many nodes of the tree are in it or were.
        taken: What was chosen last.
    """

    ranked: list[tuple[Rank, SearchNode]] = field(default_factory=list[tuple[Rank, SearchNode]])
    known: int = 0
    taken: list[SearchNode] = field(default_factory=list[SearchNode])


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The most promising of all open nodes, the first found of equals: best-first search.

    Attributes:
        by: How promising a node is.
        width: How many are taken at a time.
        deepest: Whether of equals the one furthest from the root goes first: where an estimate is good, many ways are
            equally good, and this follows one of them.
    """

    by: Score = NodeValue()
    width: int = 1
    deepest: bool = False

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"Best.width: got {self.width}; need at least 1")

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        if not (isinstance(self.by, FixedScore) and self.by.fixed):
            return heapq.nsmallest(self.width, tree.live(), key=self._rank)
        heap: Heap = tree.notes.setdefault(("Best", id(self)), Heap())
        # What is written on at in several goes comes up again.
        for node in (*heap.taken, *tree.nodes[heap.known :]):
            heapq.heappush(heap.ranked, (self._rank(node), node))
        heap.known, heap.taken = len(tree.nodes), []
        while heap.ranked and len(heap.taken) < self.width:
            _, node = heapq.heappop(heap.ranked)
            if node.live:
                heap.taken.append(node)
        return list(heap.taken)

    def _rank(self, node: SearchNode) -> Rank:
        return (-self.by(node), -node.depth if self.deepest else 0, node.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionOf:
    """What several selectors choose, each node once: some heaps over the same open nodes (MPS-Prover, 2505.10962).

    Experimental: of the paper the abstract was read. Its heaps are a critic's, and some of simple rules, so that a
    critic that is wrong in one way does not starve the others.

    Attributes:
        of: The selectors, at least one.
    """

    of: Sequence[Select] = (Best(by=NodeValue()), Best(by=RatedValue()))

    def __post_init__(self) -> None:
        if not self.of:
            raise ValueError("UnionOf.of: got none; need at least one selector")

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        return list(dict.fromkeys(node for select in self.of for node in select(tree)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthFirst:
    """The deepest of the open nodes: a path is followed to its end, and then left as late as possible.

    Attributes:
        by: Which of equally deep ones goes first; the first found of equals.
    """

    by: Score = RatedValue()

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The node."""
        return heapq.nsmallest(1, tree.live(), key=lambda node: (-node.depth, -self.by(node), node.number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """All open nodes, level by level: with `BeamWidth` a beam search, without a full tree."""

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        return tree.live()
