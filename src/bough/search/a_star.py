"""A*: the fewest turns, by an estimate of the remaining turns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bough.needs import ORACLE, Need
from bough.rollout.cursor import Cursor
from bough.search.expand import Sample
from bough.search.frontier import Best
from bough.search.node import SearchNode
from bough.search.prune import DedupeStates
from bough.search.score import AStarCost, known
from bough.search.search import Search
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsToGo:
    """Minus the turns of the oracle's plan from a state, for `AStarCost`; needs an oracle.

    Attributes:
        hopeless: Turns of a state without a plan.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE.or_else("another evaluate, such as RolloutValue()")})

    hopeless: float = 1000.0

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value."""
        plan = await tree.rollout.plan(node.at) if isinstance(node.at, Cursor) else None
        return -self.hopeless if plan is None else -float(len(plan))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """Branch and bound: after a success, prunes nodes that can't lead to a cheaper path by their estimate."""

    def __call__(self, tree: SearchTree, fresh: Sequence[SearchNode]) -> None:
        """Prune the nodes whose bound is not below the cheapest success."""
        least: float = min([node.path_cost for node in fresh if node.success], default=math.inf)
        least = tree.notes["Bounded"] = min(least, tree.notes.get("Bounded", math.inf))
        if least < math.inf:
            for node in tree.live():
                if node.path_cost - known(node.value) >= least:
                    tree.prune(node)


def a_star(width: int = 4, weight: float = 1.0) -> Search:
    """A* (Hart, Nilsson and Raphael, 1968): the shortest path, by an estimate of the turns to go; needs state keys.

    All children of a node are executed and estimated. The node with the fewest turns so far plus turns to go is
    expanded next, ties go to the deepest. The search ends when no open node can lead to a shorter path. Textbook A*
    ends when a solution is selected for expansion; here the first success found is not always a shortest. The estimate
    is the environment's oracle; use any `evaluate` that returns minus the turns to go. `tool_chain` has estimates and
    costs from stored plans instead.
    """
    return Search(
        select=Best(by=AStarCost(weight=weight), deepest=True),
        expand=Sample(width=width),
        evaluate=TurnsToGo(),
        prune=(DedupeStates(), Bounded()),
        eager=True,
        stop_value=None,
    )
