"""Qualities of an action that are scored apart and added."""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

from bough.ask.prompts import LabelParser
from bough.explore.quality import LlmJudge, Quality
from bough.needs import POLICY
from bough.piece import NotEmpty, piece
from bough.rollout.cursor import PendingAction
from bough.rollout.rollout import Rollout

STORY = "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
THOUGHT = STORY + "It thinks:\n{thought}\n\nIs that thought good, unclear or bad?"
ACTION = STORY + "It may do this next:\n{action}\n\nIs that action good, unclear or bad?"


@piece
class QualitySum:
    """The sum of several qualities, such as those of the thought and of the action (SLATE, arXiv 2602.23440).

    Scores 1 and -1 give 0. Without the score of a part the action has none. The parts are scored one after another,
    and none after one without a score.

    Attributes:
        parts: The qualities, at least one.
    """

    parts: Annotated[Sequence[Quality], NotEmpty("at least one quality")] = field(
        default_factory=lambda: (LlmJudge(prompt=THOUGHT), LlmJudge(prompt=ACTION))
    )

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float | None:
        """The sum; see `Quality`."""
        total = 0.0
        for part in self.parts:
            score = await part(rollout, draft)
            if score is None:
                return None
            total += score
        return total


def slate_judge(role: str = POLICY) -> QualitySum:
    """SLATE's judge (arXiv 2602.23440): two questions for each candidate, about its thought and its action.

    Each answer is worth 1 (good), 0 (unclear) or -1 (bad). The thought is the text before the action, such as what
    stands before the tag of `Tagged`; an action without one has 0 for it. The paper's prompts are for search; these are
    of Bough.

    Args:
        role: The role whose model answers.
    """
    read = LabelParser(scores={"good": 1.0, "unclear": 0.0, "bad": -1.0})
    return QualitySum(parts=tuple(LlmJudge(prompt=prompt, read=read, role=role) for prompt in (THOUGHT, ACTION)))
