"""Ratings of actions by the agent's critic."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from bough.needs import CRITIC, ON_POLICY, Need
from bough.piece import Between, piece
from bough.search.critic_turns import turns_to_go
from bough.search.node import SearchNode
from bough.search.tree import SearchTree


@piece
class CriticRating:
    """The critic's values of all actions of a state, in one forward pass and one call; needs a critic.

    The pass shares the tokens of the state. An action's value is that before its last token, where
    `head_targets` of "action" train the head: `Searched(target="action")`, `QLearning`.

    Attributes:
        discount: With a discount g the rating is minus the turns to go that a value v implies, -log(v) / log(g), for
            `AStarCost`: .81 is 2 turns with .9. None for the value itself.
        min_value: Values below count as this, with a discount.
    """

    needs: ClassVar[frozenset[Need]] = frozenset(
        each.or_else("another rate, such as Likely()") for each in (CRITIC, ON_POLICY)
    )

    discount: Annotated[float | None, Between(0, 1, above=True, below=True)] = None
    min_value: Annotated[float, Between(0, 1, above=True, below=True)] = 1e-3

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children].

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
        """
        del node
        values = await tree.rollout.value_each([child.draft for child in children if child.draft is not None])
        if self.discount is None:
            return values
        return [-turns_to_go(value, self.discount, self.min_value) for value in values]
