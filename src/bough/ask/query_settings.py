"""The settings of a piece with questions to a model."""

from typing import Annotated, TypeVar

from bough.ask.prompts import AnswerParser
from bough.ask.query import Query
from bough.needs import POLICY, Need, roles
from bough.piece import Above, AtLeast, piece

Read = TypeVar("Read")


@piece
class QuerySettings:
    """The settings of a piece with questions to the model of a role; a piece inherits them.

    Attributes:
        role: The role whose model answers.
        max_tokens: Maximum length of an answer; None for the limit of an action of the agent.
        temperature: Of the sampling, from the model's full distribution; None for the agent's sampling settings.
        deadline_s: Maximum duration of an answer, in seconds; None for the limit of a completion.
    """

    role: str = POLICY
    max_tokens: Annotated[int | None, AtLeast(1)] = None
    temperature: Annotated[float | None, AtLeast(0, "a finite number, 0 or more")] = None
    deadline_s: Annotated[float | None, Above(0, "more than 0 seconds")] = None

    @property
    def needs(self) -> frozenset[Need]:
        """A model for the role, if it is not the policy's."""
        return roles(self.role)

    def query(
        self, prompt: str, read: AnswerParser[Read], *name: int | str, system: str = "", n: int = 1
    ) -> Query[Read]:
        """The question with this user message, and these settings; see `Query`."""
        return Query(
            prompt=prompt,
            read=read,
            system=system,
            role=self.role,
            n=n,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            deadline_s=self.deadline_s,
            name=name,
        )


@piece
class VoteSettings(QuerySettings):
    """The settings of a piece whose values are votes of a model, sampled in a conversation of their own.

    Attributes:
        n: Number of votes.
        max_tokens: Maximum length of an answer.
        temperature: Of the sampling, from the model's full distribution.
        deadline_s: Maximum duration of an answer, in seconds.
    """

    n: Annotated[int, AtLeast(1)] = 1
    max_tokens: int = 256
    temperature: float = 1.0
    deadline_s: float = 120.0
