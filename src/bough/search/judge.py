"""Values and ratings from answers of the agent's engine (LLM as a judge)."""

import math
from collections.abc import Sequence
from typing import Annotated

from bough.ask import QuerySettings
from bough.ask.prompts import AnswerParser, LabelParser, Placeholders
from bough.needs import POLICY, Need, roles
from bough.piece import AtLeast, piece
from bough.search.node import SearchNode, mean_vote
from bough.search.questions import asked, prompt_fields
from bough.search.tree import SearchTree

SYSTEM = "You judge how an agent gets on with its task."
PLACE = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "Is the task solved? Answer yes; on track if it is not, but comes nearer; or no."
)
ACTION = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "It may do this next:\n{action}\n\nWill that solve the task? Answer yes; on track if it brings it nearer; or no."
)


@piece
class Judge(QuerySettings):
    """The engine's value of a state, mean of n answers (Tree Search for LM Agents, arXiv 2407.01476).

    The acting engine answers, in a conversation of its own; each answer is one call, and n of them are sampled
    concurrently. An answer that can't be parsed is requested once more, and then leaves the mean, as do late and
    refused ones. Without any answer the node is unjudged: see `Search`.

    Examples:
        n = 3, the answers "yes", "On track." and "no": (1 + .5 + 0) / 3 = .5

    Attributes:
        n: Number of answers: 20 in the paper, 10 in WebDreamer (2411.06559), 5 in SPaR (2412.11605).
        prompt: The question. It may use the placeholders {instructions}, {turns} and {observation}.
        system: The system prompt.
        read: Converts an answer to a value: `LabelParser` of a table, or a `NumberParser` in a range.
        keep: Whether the infos of the tree hold the questions and answers (`AnsweredQuestion`), to train the
            judge.
    """

    n: Annotated[int, AtLeast(1)] = 1
    prompt: Annotated[str, Placeholders()] = PLACE
    system: str = SYSTEM
    read: AnswerParser[float] = LabelParser()
    keep: bool = False

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when the answers do not all fit a budget.
        """
        text = self.prompt.format_map(prompt_fields(tree, node))
        return await _mean(self, "judge", tree, node, text)


@piece
class JudgeAction(QuerySettings):
    """The engine's rating of actions before they are executed: as `Judge`, with the placeholder {action}.

    Attributes:
        n: Number of answers for each action.
        prompt: The question. It may use the placeholders {instructions}, {turns}, {observation} and {action}.
        system: The system prompt.
        read: Converts an answer to a value.
    """

    n: Annotated[int, AtLeast(1)] = 1
    prompt: Annotated[str, Placeholders("action")] = ACTION
    system: str = SYSTEM
    read: AnswerParser[float] = LabelParser()

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """The rating of each child [children].

        Raises:
            BudgetExceeded: when the answers do not all fit a budget.
        """
        fields = prompt_fields(tree, node)
        texts = [self.prompt.format_map(fields | {"action": child.action}) for child in children]
        return await tree.together(
            _mean(self, "judge action", tree, child, text) for child, text in zip(children, texts, strict=True)
        )


@piece
class Confidence:
    """The probability of "yes" against "no" for a state (MCTS-DPO, arXiv 2405.00451); needs scores.

        value = p(yes) / (p(yes) + p(no))          p: probability of the first tokens of the answer

    Two calls, independent of the temperature. The engine must return log-probabilities of given tokens; servers with
    the chat dialect do not.

    Attributes:
        prompt: The question. It may use the placeholders {instructions}, {turns} and {observation}.
        system: The system prompt.
        yes: Start of a positive answer.
        no: Start of a negative answer.
        role: The role whose model answers.
    """

    prompt: Annotated[str, Placeholders()] = PLACE
    system: str = SYSTEM
    yes: str = "yes"
    no: str = "no"
    role: str = POLICY

    def __post_init__(self) -> None:
        if not self.yes or not self.no or self.yes == self.no:
            raise ValueError(f"Confidence: got yes={self.yes!r}, no={self.no!r}; need two different words")

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's."""
        return roles(self.role)

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when it does not fit a budget.
            EngineFault: when the engine broke.
        """
        text = self.prompt.format_map(prompt_fields(tree, node))
        scores = await tree.together(
            tree.rollout.score(
                (self.system, text, answer),
                role=self.role,
            )
            for answer in (self.yes, self.no)
        )
        yes, no = map(sum, scores)
        # 1 / (1 + exp(no - yes)), which does not overflow.
        return 0.5 * (1.0 + math.tanh((yes - no) / 2))


async def _mean(judge: Judge | JudgeAction, name: str, tree: SearchTree, node: SearchNode, text: str) -> float:
    keep = isinstance(judge, Judge) and judge.keep
    queries = [judge.query(text, judge.read, name, number, system=judge.system) for number in range(judge.n)]
    return mean_vote(node, await tree.together(asked(tree, node, query, keep=keep) for query in queries))
