"""The turns that are left, as far as a discounted value tells."""

import math
from dataclasses import dataclass
from typing import ClassVar

from bough.rollout.cursor import Cursor
from bough.search.evaluate import CRITIC_NEEDS
from bough.search.node import SearchNode
from bough.search.tree import SearchTree
from bough.tree.needs import Need


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticTurns:
    """Minus the turns to go that a discounted critic implies, log(value) / log(discount); needs a critic.

    For `AStarCost`. A success that is sure and d turns away is worth discount^d to a critic that was trained with that
    discount; one that is not sure looks further away. A value of .9^3 means 3 turns, with discount .9; values below
    `least` mean as many as `least` does.

    Attributes:
        discount: With which the critic's goals were discounted a turn, in (0, 1).
        least: The least value that is told apart, in (0, 1).
    """

    needs: ClassVar[frozenset[Need]] = CRITIC_NEEDS

    discount: float = 0.9
    least: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 < self.discount < 1 or not 0 < self.least < 1:
            raise ValueError(
                f"CriticTurns: got discount={self.discount}, least={self.least}; need numbers between 0 and 1"
            )

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when the budget of calls can't pay for it.
        """
        value = await tree.rollout.value(node.at) if isinstance(node.at, Cursor) else tree.lost
        return -math.log(min(1.0, max(self.least, value))) / math.log(self.discount)
