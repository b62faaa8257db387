"""Selectors over all open nodes of the tree."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from bough.piece import AtLeast, NotEmpty, piece
from bough.search.node import SearchNode
from bough.search.pieces import FixedScore, Score, Select
from bough.search.score import NodeValue, RatedValue
from bough.search.tree import SearchTree

Rank: TypeAlias = tuple[float, int, int]
"""Sort key, lowest first: minus the score, minus the depth where it counts, the number."""


@dataclass(slots=True, kw_only=True)
class Heap:
    """Open nodes by rank, for scores that are constant.

    Attributes:
        ranked: A heap; nodes that are no longer open are dropped when they are popped.
        known: Number of nodes of the tree that were pushed so far.
        restarts: Number of restarted nodes that were pushed again so far.
        taken: The nodes of the last selection.
    """

    ranked: list[tuple[Rank, SearchNode]] = field(default_factory=list[tuple[Rank, SearchNode]])
    known: int = 0
    restarts: int = 0
    taken: list[SearchNode] = field(default_factory=list[SearchNode])


@piece
class Best:
    """Best-first search: the open nodes of highest score, ties to the first found.

    Attributes:
        by: Scores a node.
        width: Number of nodes per round.
        deepest: Whether ties go to the deepest node: with a good estimate many paths tie, and this follows one of them.
    """

    by: Score = NodeValue()
    width: Annotated[int, AtLeast(1)] = 1
    deepest: bool = False

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        if not (isinstance(self.by, FixedScore) and self.by.fixed):
            return heapq.nsmallest(self.width, tree.live(), key=self._rank)
        heap: Heap = tree.notes.setdefault(("Best", id(self)), Heap())
        # A node with several expansions is pushed again.
        for node in (*heap.taken, *tree.nodes[heap.known :], *tree.restarted[heap.restarts :]):
            heapq.heappush(heap.ranked, (self._rank(node), node))
        heap.known, heap.restarts, heap.taken = len(tree.nodes), len(tree.restarted), []
        while heap.ranked and len(heap.taken) < self.width:
            _, node = heapq.heappop(heap.ranked)
            if node.live:
                heap.taken.append(node)
        return list(heap.taken)

    def _rank(self, node: SearchNode) -> Rank:
        return (-self.by(node), -node.depth if self.deepest else 0, node.number)


@piece
class UnionOf:
    """The union of several selections, each node once: several heaps over the same open nodes, as in `mps_prover()`.

    Attributes:
        of: The selectors, at least one.
    """

    of: Annotated[Sequence[Select], NotEmpty("at least one selector")] = (Best(by=NodeValue()), Best(by=RatedValue()))

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        return list(dict.fromkeys(node for select in self.of for node in select(tree)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthFirst:
    """Depth-first search: the deepest open node.

    Attributes:
        by: Breaks ties of depth; then ties go to the first found.
    """

    by: Score = RatedValue()

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The node."""
        return heapq.nsmallest(1, tree.live(), key=lambda node: (-node.depth, -self.by(node), node.number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """All open nodes, level by level: with `BeamWidth` a beam search, without it a full tree."""

    def __call__(self, tree: SearchTree) -> list[SearchNode]:
        """The nodes."""
        return tree.live()
