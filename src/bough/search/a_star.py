"""A*: the fewest turns, by an estimate of the remaining turns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bough.needs import ORACLE, Need
from bough.rollout.cursor import Cursor
from bough.search.node import SearchNode
from bough.search.score import known
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsToGo:
    """Minus the turns of the oracle's plan from a state, for `AStarCost`; needs an oracle.

    Attributes:
        turns_without_plan: Turns of a state without a plan.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE.or_else("another evaluate, such as RolloutValue()")})

    turns_without_plan: float = 1000.0

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value."""
        plan = await tree.rollout.plan(node.at) if isinstance(node.at, Cursor) else None
        return -self.turns_without_plan if plan is None else -float(len(plan))


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
