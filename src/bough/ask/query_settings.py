"""The settings of a piece with questions to a model."""

import math
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bough.ask.prompts import AnswerParser
from bough.ask.query import Query
from bough.needs import POLICY, Need, roles

Read = TypeVar("Read")


class SamplingFields(Protocol):
    """The settings of a piece that samples answers."""

    @property
    def max_tokens(self) -> int | None:
        """Maximum length of an answer."""
        ...

    @property
    def temperature(self) -> float | None:
        """Of the sampling."""
        ...

    @property
    def deadline_s(self) -> float | None:
        """Maximum duration of an answer, in seconds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySettings:
    """The settings of a piece with questions to the model of a role; a piece inherits them.

    Attributes:
        role: The role whose model answers.
        max_tokens: Maximum length of an answer; None for the limit of an action of the agent.
        temperature: Of the sampling, from the model's full distribution; None for the agent's sampling settings.
        deadline_s: Maximum duration of an answer, in seconds; None for the limit of a completion.
    """

    role: str = POLICY
    max_tokens: int | None = None
    temperature: float | None = None
    deadline_s: float | None = None

    def __post_init__(self) -> None:
        check_sampling(self)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteSettings(QuerySettings):
    """The settings of a piece whose values are votes of a model, sampled in a conversation of their own.

    Attributes:
        n: Number of votes.
        max_tokens: Maximum length of an answer.
        temperature: Of the sampling, from the model's full distribution.
        deadline_s: Maximum duration of an answer, in seconds.
    """

    n: int = 1
    max_tokens: int = 256
    temperature: float = 1.0
    deadline_s: float = 120.0

    def __post_init__(self) -> None:
        check_sampling(self, self.n)


def check_sampling(piece: SamplingFields, n: int = 1) -> None:
    """Check the settings of sampled answers, and the number of votes.

    Raises:
        ValueError: names the first setting that is out of range.
    """
    name = type(piece).__name__
    if n < 1:
        raise ValueError(f"{name}.n: got {n}; need at least 1")
    if piece.max_tokens is not None and piece.max_tokens < 1:
        raise ValueError(f"{name}.max_tokens: got {piece.max_tokens}; need at least 1")
    if piece.temperature is not None and not 0 <= piece.temperature < math.inf:
        raise ValueError(f"{name}.temperature: got {piece.temperature}; need a finite number, 0 or more")
    if piece.deadline_s is not None and not piece.deadline_s > 0:
        raise ValueError(f"{name}.deadline_s: got {piece.deadline_s}; need more than 0 seconds")
