"""The present subgoal of a search: its hint for the policy, and the test whether a state reaches it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import LabelParser, Placeholders
from bough.piece import piece
from bough.rollout.cursor import PendingAction
from bough.search.evaluate import ConstantValue
from bough.search.node import SearchNode, mean_vote
from bough.search.pieces import Evaluate
from bough.search.questions import asked, prompt_fields
from bough.search.tree import SearchTree

REACHED = 2.0
"""Value of a state that reaches the subgoal, and of success; other values are at most 1."""
ASK = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "The present subgoal: {subgoal}\nHas the agent reached it? Answer yes or no."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgoal:
    """A subgoal.

    Attributes:
        number: Distinguishes the searches of one tree.
        text: The subgoal; "" for the task itself.
        done: The subgoals that were reached before it.
        advice: The planner's reflection on the last failed search; "" without one.
        first: Number of the first node of its search.
    """

    number: int = 0
    text: str = ""
    done: tuple[str, ...] = ()
    advice: str = ""
    first: int = 1


def present_subgoal(tree: SearchTree) -> Subgoal:
    """The subgoal of the present search; the task itself without a planner."""
    return tree.notes.get("subgoal") or Subgoal()


@piece
class SubgoalHint:
    """The present subgoal and the planner's advice, as a hint for the policy; empty for the task itself.

    Attributes:
        text: The hint; it may use {subgoal}, {done} and {advice}.
    """

    text: Annotated[str, Placeholders("subgoal", "done", "advice")] = "Your present subgoal: {subgoal}\n{advice}"

    @property
    def in_turn(self) -> bool:
        """See `Hint`."""
        return False

    async def __call__(self, tree: SearchTree, node: SearchNode, earlier: Sequence[PendingAction]) -> str:
        """The hint."""
        del earlier
        goal = present_subgoal(tree)
        if not goal.text:
            return ""
        own = {"subgoal": goal.text, "done": "\n".join(goal.done), "advice": goal.advice}
        return self.text.format_map(prompt_fields(tree, node) | own).strip()


@piece
class SubgoalValue(QuerySettings):
    """2 in a state that reaches the present subgoal, else another value, up to 1.

    The role's model answers whether the state reaches it; without an answer the node is unjudged (`Search`). Without a
    subgoal there is no question, and only the environment's success counts. For searches in `SubgoalSearch`, with
    `answer_at_any_node`, and 2 for `success_value` and `stop_value`.

    Attributes:
        value: The value of other states.
        prompt: The question; it may use {subgoal}, {instructions}, {turns} and {observation}.
    """

    value: Evaluate = field(default_factory=ConstantValue)
    prompt: Annotated[str, Placeholders("subgoal")] = ASK

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when an answer does not fit a budget.
        """
        goal = present_subgoal(tree)
        if goal.text and node is not tree.root:
            text = self.prompt.format_map(prompt_fields(tree, node) | {"subgoal": goal.text})
            read = LabelParser(scores={"yes": 1.0, "no": 0.0})
            reached = await asked(tree, node, self.query(text, read, "reached", goal.number))
            if reached is None:
                return mean_vote(node, ())
            node.unjudged = False
            if reached:
                return REACHED
        value = await self.value(tree, node)
        return value if math.isnan(value) else min(1.0, value)
