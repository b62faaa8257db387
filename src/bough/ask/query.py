"""A question to the model of a role."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from bough.ask.answer import Answer
from bough.ask.prompts import AnswerParser
from bough.needs import POLICY

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Generic[Read]):
    """A question to the model of a role, with the parser of its answer.

    Attributes:
        prompt: The user message.
        read: Parses an answer; its None is the verdict `UNPARSED`.
        system: The system prompt.
        role: The role whose model answers.
        n: Number of votes: answers that are sampled with seeds of their own.
        max_tokens: Maximum length of an answer; None for the limit of an action of the agent.
        temperature: Of the sampling, from the model's full distribution; None for the agent's sampling settings.
        deadline_s: Maximum duration of an answer, in seconds; later it is `LATE`. None for the limit of a completion.
        name: Distinguishes samples of equal queries, and seeds them; equal queries without a name share one answer.
    """

    prompt: str
    read: AnswerParser[Read]
    system: str = ""
    role: str = POLICY
    n: int = 1
    max_tokens: int | None = None
    temperature: float | None = None
    deadline_s: float | None = None
    name: tuple[int | str, ...] = ()


@runtime_checkable
class QueryClient(Protocol):
    """Sends questions to the models of roles, within a budget and a deadline."""

    async def __call__(self, query: Query[Read]) -> Answer[Read]:
        """The answer, never later than the deadline; a model that fails or is late changes its verdict alone."""
        ...
