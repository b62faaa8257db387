"""A*: as few turns as possible, by an estimate of the turns that are left."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bough.rollout.cursor import Cursor
from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.node import SearchNode
from bough.search.prune import DedupeStates
from bough.search.score import AStarCost, known
from bough.search.search import Search
from bough.search.tree import SearchTree
from bough.tree.needs import ORACLE, Need


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsToGo:
    """Minus the turns that the environment's oracle needs from a place, for `AStarCost`; needs an oracle.

    Attributes:
        hopeless: How many where it knows no way.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE.or_else("another evaluate, such as Rollouts()")})

    hopeless: float = 1000.0

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value."""
        plan = await tree.rollout.plan(node.at) if isinstance(node.at, Cursor) else None
        return -self.hopeless if plan is None else -float(len(plan))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """Branch and bound: after a success only what may still be shorter goes on, by the turns to go that values say."""

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Give up the others."""
        least: float = min([node.depth for node in fresh if node.success], default=math.inf)
        least = tree.notes["Bounded"] = min(least, tree.notes.get("Bounded", math.inf))
        if least < math.inf:
            for node in tree.live():
                if node.depth - known(node.value) >= least:
                    tree.give_up(node)


def a_star(width: int = 4, weight: float = 1.0) -> Search:
    """A* (Hart, Nilsson and Raphael, 1968): the shortest way, by an estimate of what is left; needs state keys.

    All children of a place are carried out and estimated; the place goes on whose turns so far and turns to go are
    fewest, and of equals the one that has come furthest. It ends when no open place may still lead to a shorter way,
    which the textbook's A* knows when the goal's turn comes: the first success found is not always a shortest. The
    estimate here is the environment's oracle; ToolChain* (arXiv 2310.13227) makes one from stored plans and the model's
    agreement with itself, take any `evaluate` that says minus the turns to go.
    """
    return Search(
        select=Best(by=AStarCost(weight=weight), deepest=True),
        expand=Sample(width=width),
        evaluate=TurnsToGo(),
        prune=(DedupeStates(), Bounded()),
        eager=True,
        enough=None,
    )
