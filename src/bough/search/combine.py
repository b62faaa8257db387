"""Evaluations composed of other evaluations, rewards or counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bough.search.node import SearchNode
from bough.search.pieces import Evaluate
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A weighted sum of evaluations, which run concurrently.

    Attributes:
        parts: The evaluations.
        weights: The weight of each.
    """

    parts: Sequence[Evaluate]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        if not self.parts or len(self.parts) != len(self.weights):
            raise ValueError(
                f"Mix: got {len(self.parts)} parts and {len(self.weights)} weights; need as many, and at least one"
            )

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when one of them does not fit a budget.
        """
        values = await tree.together(_value(part, tree, node) for part in self.parts)
        return sum(weight * value for weight, value in zip(self.weights, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Self-consistency (arXiv 2203.11171): the share of an action's copies among the samples of its parent.

    It makes no request, and needs a search that merges equal actions. Of five samples, three the same: .6 for that
    action.
    """

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value; 1 at the root."""
        del tree
        beside = [node] if node.parent is None else node.parent.children
        return node.copies / sum(each.copies for each in beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvReturn:
    """The sum of the environment's rewards on the path, such as the share of tests that a program passes.

    In a search with `success_value=None` it also evaluates the ends of paths.

    Attributes:
        last: Whether only the reward of the last action counts.
    """

    last: bool = False

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value."""
        del tree
        before = node.parent.reward if self.last and node.parent is not None else 0.0
        return node.reward - before


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteAndEvaluate:
    """Rates actions by executing them and evaluating the states after them; needs forks.

    The search does not execute them again. An action that ends the path is rated by `SearchTree.value`.

    Attributes:
        evaluate: Evaluates the states.
    """

    evaluate: Evaluate

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children].

        Raises:
            BudgetExceeded: when they do not all fit a budget.
        """
        del node
        await tree.together((tree.execute(child) for child in children), [*map(tree.max_cost, children)])
        return await tree.together(self._executed_value(tree, child) for child in children)

    async def _executed_value(self, tree: SearchTree, child: SearchNode) -> float:
        value = tree.end_value(child) if child.ended else None
        if value is not None:
            return value
        return math.nan if child.at is None or child.pruned else await self.evaluate(tree, child)


async def _value(part: Evaluate, tree: SearchTree, node: SearchNode) -> float:
    return await part(tree, node)
