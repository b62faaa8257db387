"""Estimated turns to go from a discounted value."""

import math
from typing import Annotated, ClassVar

from bough.needs import Need
from bough.piece import Between, piece
from bough.rollout.cursor import Cursor
from bough.search.evaluate import CRITIC_NEEDS
from bough.search.node import SearchNode
from bough.search.tree import SearchTree


@piece
class CriticTurns:
    """Minus the turns to go that a discounted critic implies, log(value) / log(discount); needs a critic.

    For `AStarCost`. A critic trained with that discount returns discount^d for a certain success d turns away, and less
    for an uncertain one. A value of .9^3 means 3 turns, with discount .9; values below `min_value` count as
    `min_value`.

    Attributes:
        discount: Discount of a turn in the critic's value targets, in (0, 1).
        min_value: Lower bound of the value, in (0, 1).
    """

    needs: ClassVar[frozenset[Need]] = CRITIC_NEEDS

    discount: Annotated[float, Between(0, 1, above=True, below=True)] = 0.9
    min_value: Annotated[float, Between(0, 1, above=True, below=True)] = 1e-3

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
        """
        value = await tree.rollout.value(node.at) if isinstance(node.at, Cursor) else tree.failure_value
        return -turns_to_go(value, self.discount, self.min_value)


def turns_to_go(value: float, discount: float, least: float) -> float:
    """The turns to a certain success that a discounted value implies; values below `least` count as `least`."""
    return math.log(min(1.0, max(least, value))) / math.log(discount)
