"""RethinkMCTS: a failed action is sampled again with a critique."""

from collections.abc import Sequence
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Placeholders
from bough.piece import piece
from bough.search.combine import ExecuteAndEvaluate
from bough.search.evaluate import ConstantValue
from bough.search.node import SearchNode
from bough.search.pieces import Evaluate
from bough.search.questions import prompt_fields
from bough.search.reflect import ANSWERED, once
from bough.search.tree import SearchTree


@piece
class Rethink(QuerySettings):
    """Replaces each failed action once, sampled with its observation and a critique (RethinkMCTS, arXiv 2409.09584).

    Needs forks. It rates actions by executing them, as `ExecuteAndEvaluate`. For an action that ends its path below
    `under` the engine writes a critique. The policy then samples a new action with a hint: the failed action, its
    observation and the critique. The new action replaces the failed one, which is pruned; it is not replaced again when
    it fails.

    Attributes:
        evaluate: Evaluates the other states.
        under: A path with a value below this has failed.
        prompt: The question; it may use the placeholders {instructions}, {turns} and {observation}.
        text: The hint; it may also use the placeholders {action} and {critique}.
    """

    evaluate: Evaluate = ConstantValue()
    under: float = 1.0
    prompt: Annotated[str, Placeholders()] = ANSWERED
    text: Annotated[str, Placeholders("action", "critique")] = (
        "You did this before:\n{action}\nWhat came of it: {observation}\n{critique}\nWrite it anew, and better."
    )

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each given child [children]; new children have their own.

        Raises:
            BudgetExceeded: when they do not all fit a budget.
        """
        execute = ExecuteAndEvaluate(evaluate=self.evaluate)
        ratings = await execute(tree, node, children)
        failed = [child for child, rating in zip(children, ratings, strict=True) if child.ended and rating < self.under]
        hints = await tree.together(self._hint(tree, child) for child in failed)
        most = [tree.max_cost(node)] * len(hints)
        drafts = await tree.together((tree.sample(node, hint=hint) for hint in hints), most)
        for child, draft in zip(failed, drafts, strict=True):
            if draft is not None:
                again = tree.add(node, draft, prior=child.prior)
                (again.rating,) = await execute(tree, node, [again])
                tree.prune(child)
        return ratings

    async def _hint(self, tree: SearchTree, child: SearchNode) -> str:
        critique = await once(tree, child, "critique", self.prompt, self)
        return self.text.format_map(prompt_fields(tree, child) | {"action": child.action, "critique": critique})
