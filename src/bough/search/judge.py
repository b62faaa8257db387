"""What places and actions are worth, as the agent's engine says when it is asked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bough.engine import Sampling
from bough.explore.asking import LabelParser, Reader, check_places
from bough.search.node import SearchNode
from bough.search.question import asked, story
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """What the engine says of a place, mean of n answers (Tree Search for LM Agents, arXiv 2407.01476).

    The engine that acts is asked, in a conversation of its own; each answer is one call, and n of them are sampled at
    once. An answer that can't be read is asked for once more, and then counts as what a failed path is worth; how often
    that happened is in the notes of the node and in the info of its action as "unanswered".

    Example:
        n = 3, the answers "yes", "On track." and "no": (1 + .5 + 0) / 3 = .5

    Attributes:
        n: How many answers: 20 in the paper, 10 in WebDreamer (2411.06559), 5 in SPaR (2412.11605).
        prompt: The question. It may use the places {instructions}, {turns} and {observation}.
        system: What the engine is told before it.
        read: What an answer is worth: `LabelParser` of a table, or a `NumberParser` in a range.
        sampling: How answers are sampled, if not as the agent samples.
    """

    n: int = 1
    prompt: str = PLACE
    system: str = SYSTEM
    read: Reader[float] = LabelParser()
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"Judge.n: got {self.n}; need at least 1")
        check_places("Judge.prompt", self.prompt)

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when a budget can't pay for all the answers.
        """
        text = self.prompt.format_map(story(tree, node))
        return await _mean(self, "judge", tree, node, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAction:
    """What the engine says of actions before they are carried out: as `Judge`, with the place {action}.

    Attributes:
        n: How many answers about each action.
        prompt: The question. It may use the places {instructions}, {turns}, {observation} and {action}.
        system: What the engine is told before it.
        read: What an answer is worth.
        sampling: How answers are sampled, if not as the agent samples.
    """

    n: int = 1
    prompt: str = ACTION
    system: str = SYSTEM
    read: Reader[float] = LabelParser()
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"JudgeAction.n: got {self.n}; need at least 1")
        check_places("JudgeAction.prompt", self.prompt, "action")

    async def __call__(self, tree: SearchTree, node: SearchNode, children: Sequence[SearchNode]) -> Sequence[float]:
        """A number for each child.

        Raises:
            BudgetExceeded: when a budget can't pay for all the answers.
        """
        told = story(tree, node)
        texts = [self.prompt.format_map(told | {"action": child.action}) for child in children]
        return await tree.together(
            _mean(self, "judge action", tree, child, text) for child, text in zip(children, texts, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """How likely the engine says yes of a place, and not no (MCTS-DPO, arXiv 2405.00451); needs scores.

        value = p(yes) / (p(yes) + p(no))          p: that the answer begins so; needs an engine that scores

    Two calls, whatever the temperature. Servers in the chat dialect do not score.

    Attributes:
        prompt: The question. It may use the places {instructions}, {turns} and {observation}.
        system: What the engine is told before it.
        yes: How a good judgement begins.
        no: How a bad one does.
    """

    prompt: str = PLACE
    system: str = SYSTEM
    yes: str = "yes"
    no: str = "no"

    def __post_init__(self) -> None:
        if not self.yes or not self.no or self.yes == self.no:
            raise ValueError(f"Confidence: got yes={self.yes!r}, no={self.no!r}; need two different words")
        check_places("Confidence.prompt", self.prompt)

    async def __call__(self, tree: SearchTree, node: SearchNode) -> float:
        """The value.

        Raises:
            BudgetExceeded: when a budget can't pay for it.
            EngineFault: when the engine broke.
        """
        text = self.prompt.format_map(story(tree, node))
        scores = await tree.together(tree.rollout.score((self.system, text, said)) for said in (self.yes, self.no))
        yes, no = map(sum, scores)
        # 1 / (1 + exp(no - yes)), which does not overflow.
        return 0.5 * (1.0 + math.tanh((yes - no) / 2))


async def _mean(judge: Judge | JudgeAction, name: str, tree: SearchTree, node: SearchNode, text: str) -> float:
    answers = await tree.together(
        asked(tree, node, name, number, system=judge.system, text=text, read=judge.read, sampling=judge.sampling)
        for number in range(judge.n)
    )
    return sum(tree.lost if answer is None else answer for answer in answers) / judge.n
