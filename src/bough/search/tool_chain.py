"""ToolChain*: A* whose costs come from stored plans, agreement of samples, and imagined plans."""

from collections.abc import Sequence
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Placeholders, Text
from bough.piece import Between, piece
from bough.search.node import SearchNode, mean_vote
from bough.search.plan_memory import PlanMemory, position, similarity
from bough.search.questions import asked, prompt_fields
from bough.search.tree import SearchTree

REST = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "It does this next:\n{action}\n\nWhat must it do after that? Write one action in each line, and nothing else."
)
SYSTEM = "You plan for an agent."
NO_PLANS = PlanMemory()


@piece
class PlanCost(QuerySettings):
    """ToolChain*'s cost of an action, and its rating by the cost that is left (arXiv 2310.13227).

        cost     (1 - similarity)^alpha * (1 - frequency)^(1 - alpha)
        rating   -(1 - position)^beta * (1 - progress)^(1 - beta)

    similarity: `plan_memory.similarity` of the actions so far, this one included. frequency: the share of the samples
    at this node that are this action. position: `plan_memory.position` of the action. progress: the turns so far over
    those of the whole plan, as the engine imagines it: one question for each action. Without an answer the action is
    unjudged (`Search`).

    Example: similarity 1, whatever the frequency: cost 0. Frequency .75 without stored plans, alpha .5: cost .5.

    Attributes:
        memory: The stored plans.
        alpha: Weight of the similarity against the frequency, in [0, 1].
        beta: Weight of the position against the progress, in [0, 1]; 1 asks nothing.
        prompt: The question for the rest of a plan, with the placeholders {instructions}, {turns}, {observation} and
            {action}.
    """

    memory: PlanMemory = NO_PLANS
    alpha: Annotated[float, Between(0, 1)] = 0.5
    beta: Annotated[float, Between(0, 1)] = 0.5
    prompt: Annotated[str, Placeholders("action")] = REST

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """Set the cost of each child; returns their ratings [children].

        Raises:
            BudgetExceeded: when the questions do not all fit a budget.
            StoreError: when the memory names no trees.
        """
        memory = self.memory.load()
        past = [self._name(each) for each in node.path()[1:]]
        samples = sum(child.copies for child in node.children)
        progress = await tree.together(self._progress(tree, node, child) for child in children)
        ratings: list[float] = []
        for child, done in zip(children, progress, strict=True):
            name = self._name(child)
            child.cost = _left(similarity([*past, name], memory), child.copies / samples, self.alpha)
            rating = None if done is None else -_left(position(name, memory), done, self.beta)
            ratings.append(mean_vote(child, [rating]))
        return ratings

    async def _progress(self, tree: SearchTree, node: SearchNode, child: SearchNode) -> float | None:
        """The turns up to an action over those of the imagined plan, in [0, 1]; None without an answer."""
        if self.beta == 1:
            return 0.0
        text = self.prompt.format_map(prompt_fields(tree, node) | {"action": child.action})
        rest = await asked(tree, child, self.query(text, Text(), "rest", system=SYSTEM))
        if rest is None:
            return None
        return child.depth / (child.depth + sum(bool(line.strip()) for line in rest.splitlines()))

    def _name(self, node: SearchNode) -> str:
        return "" if node.draft is None else self.memory.name(node.draft.parsed.action)


def _left(one: float, other: float, weight: float) -> float:
    """The weighted geometric mean of what two shares lack."""
    return (1 - one) ** weight * (1 - other) ** (1 - weight)
