"""Quality of actions by form and topic, as in DialTree-RPO."""

from typing import Annotated, ClassVar

from bough.ask import QuerySettings
from bough.ask.prompts import LabelParser, Placeholders
from bough.explore.quality import LlmJudge
from bough.piece import piece
from bough.rollout.cursor import PendingAction
from bough.rollout.rollout import Rollout

PROMPT = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "It may do this next:\n{action}\n\nDoes that serve its goal? Answer yes or no."
)


@piece
class OnTopic(QuerySettings):
    """DialTree-RPO's filter of branches (arXiv 2510.02286): 0 for a malformed action, 1 off the topic, 2 on it.

    A model judges the topic of well-formed actions, with one question for each; an action without a readable answer
    has no quality. With `FullTree(min_quality=2)` only actions of 2, and those without a quality, are executed.

    Attributes:
        prompt: The question. It may use the placeholders {instructions}, {turns}, {observation} and {action}.
    """

    labels: ClassVar[LabelParser] = LabelParser(scores={"yes": 1.0, "no": 0.0})

    prompt: Annotated[str, Placeholders("action")] = PROMPT

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """0, 1 or 2; None without an answer."""
        if not draft.parsed.well_formed:
            return 0.0
        judge = LlmJudge(
            prompt=self.prompt,
            read=self.labels,
            role=self.role,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            deadline_s=self.deadline_s,
        )
        found = await judge(rollout, draft)
        return None if found is None else 1.0 + found
