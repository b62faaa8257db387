"""Introspection: a hint from an analysis of the parent's result and those of the siblings."""

from collections.abc import Sequence
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import Placeholders, Text
from bough.piece import piece
from bough.rollout.cursor import PendingAction
from bough.search.node import SearchNode
from bough.search.questions import asked, prompt_fields
from bough.search.tree import SearchTree

ANALYSE = (
    "The agent was told:\n{instructions}\n\nWhat it did so far:\n{turns}\nThe result:\n{observation}\n\n"
    "What it tried next from here, with the results:\n{actions}\n\n"
    "Which of this worked, which did not, and why? Say in a few sentences what to do next that is different and better."
)
SYSTEM = "You analyse what an agent did."
NOTHING = "(nothing yet)"


@piece
class Introspect(QuerySettings):
    """I-MCTS's introspective expansion (arXiv 2502.14693): an analysis of earlier results, before an action is sampled.

    The engine reads the parent's action with its result, and the siblings sampled so far with theirs: each is executed
    before the next is analysed, and the search does not execute it again. Its analysis is added to the prompt of the
    next action. One question for each action, and none at the root before its first child. Without an answer the hint
    is the list of siblings alone.

    Attributes:
        prompt: The question; it may use the placeholders {instructions}, {turns} (the last one is the parent's action),
            {observation} (its result) and {actions} (the siblings).
        text: The hint, with the placeholder {analysis}.
        system: The system prompt.
    """

    prompt: Annotated[str, Placeholders("actions")] = ANALYSE
    text: Annotated[str, Placeholders("analysis")] = "From what was tried before:\n{analysis}"
    system: str = SYSTEM

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return True

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The hint.

        Raises:
            BudgetExceeded: when the question does not fit a budget.
        """
        if node.parent is None and not earlier:
            return ""
        tried: dict[str, str] = {}
        for draft in earlier:
            await tree.execute_action(draft)
            tried.setdefault(draft.parsed.text, tree.observation(draft) or "(it failed)")
        siblings = "\n".join(f"- {action} -> {result}" for action, result in tried.items())
        fields = prompt_fields(tree, node) | {"actions": siblings or NOTHING}
        text = self.prompt.format_map(fields)
        query = self.query(text, Text(), "introspect", len(earlier), system=self.system)
        analysis = await asked(tree, node, query)
        return self.text.format_map(fields | {"analysis": siblings if analysis is None else analysis})
