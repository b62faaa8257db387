"""The models of a run, for appraisers: questions, and scores and continuations by the policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bough.ask import QueryClient, Reply
from bough.tree import Message, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """The observation at the end of a context, hidden by other messages of as many tokens.

    Attributes:
        last: Number of the context's last tokens that the observation was rendered as.
        action: The tokens of the action before it.
        messages: The messages in its place.
        tools: The tools after it.
    """

    last: int
    action: tuple[int, ...]
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """A continuation whose log-probability is computed.

    Attributes:
        tokens: The context, in the tokens of the policy.
        text: The continuation.
        action: The continuation in the tokens of the policy, in place of `text`.
        prefix: Text between the two, whose log-probability does not count.
        masked: What hides the observation at the end of the context; None for the context as it is.
        deadline_s: Maximum duration, in seconds.
    """

    tokens: tuple[int, ...]
    text: str = ""
    action: tuple[int, ...] = ()
    prefix: str = ""
    masked: Masked | None = None
    deadline_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """A context that the policy continues, once for each vote.

    Attributes:
        tokens: The context, in the tokens of the policy.
        prefix: Text with which the continuation begins.
        vote: The number of the vote; each has a seed of its own.
        max_tokens: Maximum length of the continuation.
        temperature: Of the sampling.
        deadline_s: Maximum duration, in seconds.
    """

    tokens: tuple[int, ...]
    prefix: str = ""
    vote: int = 0
    max_tokens: int = 16
    temperature: float = 1.0
    deadline_s: float = 120.0


@runtime_checkable
class AskModels(QueryClient, Protocol):
    """Sends queries to models, with a cache: equal queries of a run are sent once, also after a resume."""

    async def score(self, scoring: Scoring) -> Reply:
        """The log-probability of a continuation under the policy; `REFUSED` where it does not fit the context."""
        ...

    async def sample(self, continuation: Continuation) -> Reply:
        """A continuation by the policy; `REFUSED` where the context leaves no room for one."""
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens of the policy."""
        ...
