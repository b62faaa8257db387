"""Board games by external search: Monte-Carlo tree search over the actions of both seats."""

import math
from typing import Annotated

from bough.piece import AtLeast, piece
from bough.search.node import SearchNode, mean_vote
from bough.search.pieces import Evaluate
from bough.search.tree import SearchTree


@piece
class PayoffValue:
    """The payoff of the seat that the search is for: at the end of a path the game's, elsewhere an estimate.

    It needs a search with `success_value=None`, so that it also values ends: a draw differs from a loss.

    Attributes:
        n: Number of games that the policy plays from a state to the end; the estimate is their mean.
        evaluate: Estimates the payoff of the seat that acts in place of them, such as `CriticValue`; its value counts
            negatively where another seat acts.
    """

    n: Annotated[int, AtLeast(1)] = 1
    evaluate: Evaluate | None = None

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value; nan where no game reached an end.

        Raises:
            BudgetExceeded: when the evaluation does not fit a budget.
        """
        if node.ended:
            return node.reward
        if self.evaluate is not None:
            value = await self.evaluate(tree, node)
            return value if tree.acts(node) else -value
        most = [tree.max_cost(node, turns=None)] * self.n
        rolled_out = await tree.together((tree.roll_out(node) for _ in range(self.n)), most)
        ends = [end for end in rolled_out if end is not None]
        return math.nan if tree.spent and not ends else mean_vote(node, [end.reward for end in ends])
