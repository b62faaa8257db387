"""How good an action is before it is done: what decides which branches of a tree are carried on."""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from bough.engine import EngineFault
from bough.env import EnvFault
from bough.explore.asking import LabelParser, Reader, check_places, story
from bough.rollout.budget import BudgetExceeded
from bough.rollout.cursor import PendingAction
from bough.rollout.rollout import Rollout
from bough.tree.needs import ORACLE, Need

QUALITY = "quality"
"""In the info of an action that was judged before it was done: how good it was found."""


@runtime_checkable
class Quality(Protocol):
    """Says how good an action is that was written and not yet done: a frozen dataclass."""

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """Higher is better; None when nobody can say.

        Raises:
            BudgetExceeded: when a budget of the tree can't pay for the answer.
            EngineFault: when the engine that was asked broke.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatScore:
    """1 for an answer in the right form, and 1 more for an action that the environment knows; costs nothing.

    Where the environment does not say which actions have a meaning, every action is taken to have one.
    """

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float:
        """0, 1 or 2."""
        del rollout
        known = draft.cursor.state.admissible
        return float(draft.parsed.well_formed) + float(known is None or draft.parsed.action.strip() in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleMatch:
    """1 for the oracle's action, 0 for another, -1 for a malformed one (`FormatScore`). Needs an oracle.

    An oracle knows one best action: another that is as good gets 0.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE.or_else("quality=Proper()")})

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """-1, 0 or 1; None where the oracle knows no way."""
        if await FormatScore()(rollout, draft) < 2:
            return -1.0
        plan = await rollout.plan(draft.cursor)
        return float(draft.parsed.action.strip() == plan[0]) if plan else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmJudge:
    """What the engine says of an action when it is asked; LLM-as-a-judge (arXiv 2306.05685).

    It is asked once for each action, and pays for it in tokens and calls. An answer that can't be read says nothing.

    Attributes:
        prompt: The question. It may use the places {instructions}, {turns}, {observation} and {action}.
        system: What it is told first.
        read: What an answer is worth: `LabelParser` of a table, or a `NumberParser` in a range.
    """

    prompt: str = (
        "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
        "It may do this next:\n{action}\n\nIs that good, unclear or bad?"
    )
    system: str = "You judge the next step of an agent."
    read: Reader[float] = field(default_factory=lambda: LabelParser(worth={"good": 1.0, "unclear": 0.0, "bad": -1.0}))

    def __post_init__(self) -> None:
        check_places("Asked.prompt", self.prompt, "action")

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """What the answer is worth."""
        here = draft.cursor
        told = str(rollout.builder.nodes[0].info["instructions"])
        places = story(told, [(turn.observation, turn.action) for turn in here.past], here.state.observation)
        text = self.prompt.format_map(places | {"action": draft.parsed.action})
        return self.read(await rollout.ask(self.system, text, "quality", *draft.branches))


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyAnswerBonus:
    """Another quality, and a bonus for an answer that comes early, as SLATE's (arXiv 2602.23440).

    An action that begins with `answer` at turn t, 1 for the first, gets weight * (turns - t) / turns more, 0 at least.
    Thought 1, answer 1, and answered at turn 2 of 4: 1 + 1 + 0.1 * 2 / 4 = 2.05.

    Attributes:
        quality: What else an action is worth.
        answer: How an action begins that answers, "" for any.
        turns: After which there is no bonus.
        weight: Of the bonus.
    """

    quality: Quality
    answer: str
    turns: int = 4
    weight: float = 0.1

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise ValueError(f"EarlyAnswerBonus.turns: got {self.turns}; need at least 1")

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """The sum of the two."""
        found = await self.quality(rollout, draft)
        if found is None or not draft.parsed.action.strip().startswith(self.answer):
            return found
        left = self.turns - 1 - len(draft.cursor.past)
        return found + self.weight * max(0, left) / self.turns


async def rate(rollout: Rollout, quality: Quality, draft: PendingAction) -> float | None:
    """How good an action is, written down with it; None when nobody could say, or a budget or the engine gave out."""
    try:
        found = await quality(rollout, draft)
    except (BudgetExceeded, EngineFault, EnvFault):
        return None
    if found is not None:
        rollout.builder.nodes[draft.node].info[QUALITY] = found
    return found
