"""Ratings of actions from comparisons by the agent's engine."""

from collections.abc import Sequence
from itertools import permutations
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Choice, Placeholders, numbered
from bough.piece import piece
from bough.search.judge import SYSTEM
from bough.search.node import SearchNode, mean_vote
from bough.search.questions import asked, prompt_fields
from bough.search.tree import SearchTree

ALL = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "It may do one of these next:\n{actions}\n\nRank them. Answer with all their numbers, the best first: 2, 1, 3"
)
TWO = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "It may do one of these next:\n{actions}\n\nWhich is better? Answer 1 or 2."
)


@piece
class Ranked(QuerySettings):
    """Experimental: the self-critic of Agent Q (arXiv 2408.07199): one question ranks all actions.

    The best of k is rated 1, the worst 0, the others evenly in between; a single action is rated 1 without a request.
    Without an answer all are unjudged (`Search`). The ratings are a convention: the paper ranks proposals and
    gives no values of ranks.

    Attributes:
        prompt: The question. It may use the placeholders {instructions}, {turns}, {observation} and {actions}.
        system: The system prompt.
    """

    prompt: Annotated[str, Placeholders("actions")] = ALL
    system: str = SYSTEM

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children].

        Raises:
            BudgetExceeded: when it does not fit a budget.
        """
        count = len(children)
        if count < 2:
            return [1.0] * count
        text = self.prompt.format_map(prompt_fields(tree, node) | {"actions": numbered_actions(children)})
        read, first = Choice(count=count, all=True), children[0].number
        order = await asked(tree, node, self.query(text, read, "rank", first, system=self.system))
        if order is None:
            return [mean_vote(child, ()) for child in children]
        return [1 - order.index(number) / (count - 1) for number in range(count)]


@piece
class Pairwise(QuerySettings):
    """DFSDT's filter (ToolLLM, arXiv 2307.16789): compares each pair of actions, in both orders.

    The rating of an action is the share of its comparisons that it won. k actions need k * (k - 1) questions, so a bias
    of the engine for the first or second position cancels. A question without an answer is no comparison, and an action
    without any is unjudged (`Search`). A single action is rated 1 without a request.

    Attributes:
        prompt: The question. It may use the placeholders {instructions}, {turns}, {observation} and {actions}.
        system: The system prompt.
    """

    prompt: Annotated[str, Placeholders("actions")] = TWO
    system: str = SYSTEM

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children].

        Raises:
            BudgetExceeded: when the answers do not all fit a budget.
        """
        if len(children) < 2:
            return [1.0] * len(children)
        fields = prompt_fields(tree, node)

        async def better(one: SearchNode, two: SearchNode) -> SearchNode | None:
            text = self.prompt.format_map(fields | {"actions": numbered_actions((one, two))})
            query = self.query(text, Choice(count=2), "pair", one.number, two.number, system=self.system)
            order = await asked(tree, node, query)
            return None if order is None else (one, two)[order[0]]

        pairs = list(permutations(children, 2))
        won = list(zip(pairs, await tree.together(better(*pair) for pair in pairs), strict=True))
        decided = [(pair, winner) for pair, winner in won if winner is not None]
        return [
            mean_vote(child, [float(winner is child) for pair, winner in decided if child in pair])
            for child in children
        ]


def numbered_actions(children: Sequence[SearchNode]) -> str:
    """The actions, one per line, with numbers from 1."""
    return numbered(child.action for child in children)
