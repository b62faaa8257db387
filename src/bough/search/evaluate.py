"""What places are worth, as far as the environment, or the agent's critic, can say."""

import math
from dataclasses import dataclass
from typing import ClassVar

from bough.rollout.cursor import Cursor
from bough.search.node import SearchNode
from bough.search.tree import SearchTree
from bough.tree.needs import CRITIC, ON_POLICY, ORACLE, Need

CRITIC_NEEDS = frozenset(each.or_else("another evaluate, such as Rollouts()") for each in (CRITIC, ON_POLICY))
"""Of an evaluation that asks the critic during rollouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantValue:
    """One value for every open place.

    Attributes:
        value: The value; None leaves it unknown until paths through the place have ended.
    """

    value: float | None = 0.0

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value; nan where it is unknown."""
        del tree, node
        return math.nan if self.value is None else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutValue:
    """The mean worth of paths that the policy plays on from a place, as in classic Monte-Carlo tree search.

    The paths stay in the growing tree, and one that succeeds can be the answer of the search. Needs an environment
    that says whether a path succeeded.

    Attributes:
        n: How many paths.
    """

    n: int = 1

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"RolloutValue.n: got {self.n}; need at least 1")

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """Play; where no path came to an end, the worth of one that failed."""
        ends = [end for end in await tree.together(tree.follow(node) for _ in range(self.n)) if end is not None]
        for end in ends:
            worth = tree.worth(end)
            if worth is None:
                raise ValueError("RolloutValue: got a search with won=None; need one that knows what an end is worth")
            end.value = end.q = worth
        tree.side += ends
        return sum(end.value for end in ends) / len(ends) if ends else tree.lost


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleValue:
    """What the environment's oracle says: discount^turns to go, 0 where there is no way; needs an oracle.

    The best that a learned value could do, and a heuristic for searches that need one. It costs nothing: what `Replay`
    has to play again for an oracle is nobody's turn.

    Attributes:
        discount: Of a turn, in (0, 1].
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE.or_else("another evaluate, such as Rollouts()")})

    discount: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.discount <= 1:
            raise ValueError(f"OracleValue.discount: got {self.discount}; need a number above 0 and up to 1")

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value."""
        plan = await tree.rollout.plan(node.at) if isinstance(node.at, Cursor) else None
        return 0.0 if plan is None else self.discount ** len(plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticValue:
    """The value of the agent's critic; needs a policy with a value head.

    The value of an ended path, for searches that need one, is that before the last token of the last action.
    """

    needs: ClassVar[frozenset[Need]] = CRITIC_NEEDS

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when the budget of calls can't pay for it.
        """
        at = node.at if isinstance(node.at, Cursor) else node.draft
        return tree.lost if at is None else await tree.rollout.value(at)
