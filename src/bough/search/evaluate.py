"""Evaluations by a constant, rollouts, the environment's oracle, or the agent's critic."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bough.needs import CRITIC, ON_POLICY, ORACLE, Need
from bough.piece import AtLeast, Between, piece
from bough.rollout.cursor import Cursor
from bough.search.node import SearchNode, mean_vote
from bough.search.tree import SearchTree
from bough.tree import ValueOf

CRITIC_NEEDS = frozenset(each.or_else("another evaluate, such as RolloutValue()") for each in (CRITIC, ON_POLICY))
"""Needs of an evaluation that calls the critic during rollouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantValue:
    """One value for every open node.

    Attributes:
        value: The value; None leaves it unknown until paths through the node have ended.
    """

    value: float | None = 0.0

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value; nan where it is unknown."""
        del tree, node
        return math.nan if self.value is None else self.value


@piece
class RolloutValue:
    """The mean value of rollouts of the policy from a node, as in classic Monte-Carlo tree search.

    The paths stay in the tree, and one that succeeds can be the answer of the search. Needs an environment that reports
    success.

    Attributes:
        n: Number of rollouts.
    """

    n: Annotated[int, AtLeast(1)] = 1

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """Roll out; nan where no rollout reached an end."""
        most = [tree.max_cost(node, turns=None)] * self.n
        rolled_out = await tree.together((tree.roll_out(node) for _ in range(self.n)), most)
        ends = [end for end in rolled_out if end is not None]
        for end in ends:
            value = tree.end_value(end)
            if value is None:
                raise ValueError(
                    "RolloutValue: got a search with success_value=None; need a search with a value for success"
                )
            end.value = end.q = value
        tree.rollout_ends += ends
        return math.nan if tree.spent and not ends else mean_vote(node, [end.value for end in ends])


@piece
class OracleValue:
    """discount^turns of the oracle's plan, 0 without a plan; needs an oracle.

    It is what a perfect learned value would return, and a heuristic for searches that need one. It costs nothing: steps
    that `Replay` repeats for an oracle are not counted.

    Attributes:
        discount: Discount of a turn, in (0, 1].
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE.or_else("another evaluate, such as RolloutValue()")})

    discount: Annotated[float, Between(0, 1, above=True)] = 0.9

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value."""
        plan = await tree.rollout.plan(node.at) if isinstance(node.at, Cursor) else None
        return 0.0 if plan is None else self.discount ** len(plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticValue:
    """The value of the agent's critic; needs a policy with a value head.

    The value of an action is that before its last token, the stop token. It is also the value of an ended path, for
    searches that need one, which has no state to read.

    Attributes:
        of: What the head values: the "state", or the "action" that led there (a process reward model, for example by
            `Searched(target="action")`).
    """

    needs: ClassVar[frozenset[Need]] = CRITIC_NEEDS

    of: ValueOf = "state"

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when it does not fit the budget of calls.
        """
        state = node.at if isinstance(node.at, Cursor) else None
        at = (node.draft or state) if self.of == "action" else (state or node.draft)
        return tree.failure_value if at is None else await tree.rollout.value(at)
