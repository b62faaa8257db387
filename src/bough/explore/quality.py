"""Quality scores of actions before they are executed: they decide which branches of a tree continue."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from bough.ask import QuerySettings
from bough.ask.prompts import AnswerParser, LabelParser, Placeholders, prompt_fields
from bough.context import Parsed
from bough.engine import EngineFault
from bough.env import EnvFault
from bough.explore.turn_texts import turn_texts
from bough.needs import CRITIC, ON_POLICY, ORACLE, Need
from bough.piece import AtLeast, piece
from bough.rollout.budget import BudgetExceeded
from bough.rollout.cursor import PendingAction
from bough.rollout.rollout import Rollout
from bough.tree import action_text, instructions_in, plain_text


@runtime_checkable
class Quality(Protocol):
    """Scores an action that is sampled and not executed: a frozen dataclass."""

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """The score, higher is better; None when it is unknown.

        Raises:
            BudgetExceeded: when it does not fit a budget of the tree.
            EngineFault: when the engine of a critic broke.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatScore:
    """1 for a well-formed answer, plus 1 for an admissible action; costs nothing.

    Where the environment lists no admissible actions, every action counts as admissible.
    """

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float:
        """0, 1 or 2."""
        del rollout
        known = draft.cursor.state.admissible
        return float(draft.parsed.well_formed) + float(known is None or draft.parsed.text.strip() in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualScore:
    """0 for every action: the executed candidate is drawn uniformly, and the path is a sample of the policy."""

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float:
        """0."""
        del rollout, draft
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleMatch:
    """1 for the oracle's action, 0 for another, -1 for a malformed one (`FormatScore`). Needs an oracle.

    An oracle returns one best action: another that is as good gets 0.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({ORACLE.or_else("quality=FormatScore()")})

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """-1, 0 or 1; None where the oracle has no plan."""
        if await FormatScore()(rollout, draft) < 2:
            return -1.0
        plan = await rollout.plan(draft.cursor)
        return float(draft.parsed.text.strip() == action_text(plan[0])) if plan else None


@piece
class LlmJudge(QuerySettings):
    """The engine's score of an action; LLM-as-a-judge (arXiv 2306.05685).

    Each action has one question, which costs tokens and a call. An answer that cannot be read, is late or is
    refused gives no score.

    Attributes:
        prompt: The question. It may use the placeholders {instructions}, {turns}, {observation}, {action} and
            {thought}, the text of the turn before the action.
        without_thought: The score of an action without a thought, if the prompt uses {thought}; it has no question.
        system: The system prompt.
        read: Converts an answer to a score: `LabelParser` of a table, or a `NumberParser` in a range.
    """

    prompt: Annotated[str, Placeholders("action", "thought")] = (
        "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
        "It may do this next:\n{action}\n\nIs that good, unclear or bad?"
    )
    system: str = "You judge the next step of an agent."
    read: AnswerParser[float] = field(
        default_factory=lambda: LabelParser(scores={"good": 1.0, "unclear": 0.0, "bad": -1.0})
    )
    without_thought: float = 0.0

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """The score of the answer."""
        here = draft.cursor
        instructions = instructions_in(rollout.builder.nodes[0].info)
        fields = prompt_fields(instructions, turn_texts(here.past), plain_text(here.state.observation))
        thought = _before_action(rollout.writer(here).agent.renderer.text(draft.tokens), draft.parsed)
        if not thought and "{thought}" in self.prompt:
            return self.without_thought
        text = self.prompt.format_map(fields | {"action": draft.parsed.text, "thought": thought})
        query = self.query(text, self.read, "quality", *draft.branches, system=self.system)
        return (await rollout.ask(query)).value


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticQuality:
    """The value of an action by the agent's critic: a process reward model that the run trains. Needs a value head.

    The head must value actions: `Process(head="value", target="action")`. One call of the critic for each action.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({CRITIC, ON_POLICY})

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float:
        """The value."""
        return await rollout.value(draft)


@piece
class EarlyAnswerBonus:
    """Another quality, plus a bonus for an early answer, as SLATE's (arXiv 2602.23440).

    An action that starts with `answer` at turn t, 1 for the first, gets weight * (turns - t) / turns more, 0 at least.
    Thought 1, answer 1, and answered at turn 2 of 4: 1 + 1 + 0.1 * 2 / 4 = 2.05.

    Attributes:
        quality: The other quality.
        answer: Prefix of an action that answers, "" for any.
        turns: The bonus is 0 from this turn on.
        weight: Weight of the bonus.
    """

    quality: Quality
    answer: str
    turns: Annotated[int, AtLeast(1)] = 4
    weight: float = 0.1

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """The sum of the two."""
        found = await self.quality(rollout, draft)
        if found is None or not draft.parsed.text.strip().startswith(self.answer):
            return found
        left = self.turns - 1 - len(draft.cursor.past)
        return found + self.weight * max(0, left) / self.turns


def _before_action(text: str, parsed: Parsed) -> str:
    """The text of a turn before its action: before the first part that the parser marked, else the action's text."""
    begins = [begin for begin, _ in parsed.spans.values()] or [text.rfind(parsed.text)]
    return text[: max(0, min(begins))].strip()


async def rate(rollout: Rollout, quality: Quality, draft: PendingAction) -> float | None:
    """The quality of an action, stored as its `rating`; None when unknown, beyond a budget or after an engine fault."""
    try:
        found = await quality(rollout, draft)
    except (BudgetExceeded, EngineFault, EnvFault):
        return None
    if found is not None:
        rollout.builder.nodes[draft.node].rating = found
    return found
