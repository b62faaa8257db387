"""Values made of other values: weighed, or looked up where an action leads."""

from collections.abc import Sequence
from dataclasses import dataclass

from bough.search import Evaluate
from bough.search.node import SearchNode
from bough.search.tree import SearchTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A weighed sum of evaluations, which are asked for at once.

    Attributes:
        parts: The evaluations.
        weights: One for each.
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
            BudgetExceeded: when a budget can't pay for one of them.
        """
        values = await tree.together(_value(part, tree, node) for part in self.parts)
        return sum(weight * value for weight, value in zip(self.weights, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Self-consistency (arXiv 2203.11171): which share of what was written beside an action is the same.

    It asks nobody, and needs a search that merges what is written twice. Of five samples, three the same: .6 for that
    action.
    """

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value; 1 at the root."""
        del tree
        beside = [node] if node.parent is None else node.parent.children
        return node.copies / sum(each.copies for each in beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvReturn:
    """What the environment paid on the way here, such as the share of tests that a program passes.

    For ends of paths, too, in a search with `won=None`.

    Attributes:
        last: Whether what was paid for the last action alone counts.
    """

    last: bool = False

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value."""
        del tree
        before = node.parent.reward if self.last and node.parent is not None else 0.0
        return node.reward - before


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteAndEvaluate:
    """Rates actions by carrying them out and evaluating where they lead; needs forks.

    The search does not carry them out again. What an action that ends the path is worth the search knows itself.

    Attributes:
        evaluate: What the places are worth.
    """

    evaluate: Evaluate

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """A number for each child.

        Raises:
            BudgetExceeded: when a budget can't pay for all of them.
        """
        del node
        await tree.together(tree.act(child) for child in children)
        return await tree.together(self._seen(tree, child) for child in children)

    async def _seen(self, tree: SearchTree, child: SearchNode) -> float:
        worth = tree.worth(child) if child.ended else None
        if worth is not None:
            return worth
        return tree.lost if child.at is None or child.pruned else await self.evaluate(tree, child)


async def _value(part: Evaluate, tree: SearchTree, node: SearchNode) -> float:
    return await part(tree, node)
