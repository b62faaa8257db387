"""Quality of actions by form and topic, as in DialTree-RPO."""

from dataclasses import dataclass
from typing import ClassVar

from bough.appraise.prompts import LabelParser, check_placeholders
from bough.explore.quality import LlmJudge
from bough.needs import POLICY, Need, roles
from bough.rollout.cursor import PendingAction
from bough.rollout.rollout import Rollout

PROMPT = (
    "The agent was told:\n{instructions}\n\nWhat happened:\n{turns}\n{observation}\n\n"
    "It may do this next:\n{action}\n\nDoes that serve its goal? Answer yes or no."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnTopic:
    """DialTree-RPO's filter of branches (arXiv 2510.02286): 0 for a malformed action, 1 off the topic, 2 on it.

    A model judges the topic of well-formed actions, with one question for each; an answer that cannot be read counts as
    on the topic. With `FullTree(min_quality=2)` only actions of 2 are executed.

    Attributes:
        prompt: The question. It may use the placeholders {instructions}, {turns}, {observation} and {action}.
        role: The role whose model answers.
    """

    labels: ClassVar[LabelParser] = LabelParser(scores={"yes": 1.0, "no": 0.0})

    prompt: str = PROMPT
    role: str = POLICY

    def __post_init__(self) -> None:
        check_placeholders("OnTopic.prompt", self.prompt, "action")

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's."""
        return roles(self.role)

    async def __call__(self, rollout: Rollout, draft: PendingAction) -> float:
        """0, 1 or 2."""
        if not draft.parsed.well_formed:
            return 0.0
        found = await LlmJudge(prompt=self.prompt, read=self.labels, role=self.role)(rollout, draft)
        return 2.0 if found is None else 1.0 + found
