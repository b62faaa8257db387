"""Questions of an appraiser to the model of a role."""

from asyncio import TaskGroup
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from bough.appraise.prompts import Reader
from bough.needs import POLICY
from bough.tree import Entry, Message, Tool, Verdict

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, sampled once for each vote.

    Attributes:
        text: The user message.
        system: The system prompt.
        role: The role whose model answers.
        vote: The number of the vote; each has a seed of its own.
        max_tokens: Maximum length of the answer.
        temperature: Of the sampling.
        deadline_s: Maximum duration, in seconds.
    """

    text: str
    system: str = ""
    role: str = POLICY
    vote: int = 0
    max_tokens: int = 256
    temperature: float = 1.0
    deadline_s: float = 120.0


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
    """A continuation whose log-probability is asked for.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer of a model.

    Attributes:
        verdict: `OK`, `LATE` or `REFUSED`; a parser decides about `UNPARSED`.
        text: The answer; "" without one.
        logprob: For a `Scoring`, the mean log-probability of a token of the continuation, nats.
        probability: For a `Scoring`, the mean probability of a token of the continuation.
        entropy: For a `Continuation`, the mean entropy of the distributions of its tokens, nats.
        tokens: Sampled tokens.
    """

    verdict: Verdict
    text: str = ""
    logprob: float = 0.0
    probability: float = 0.0
    entropy: float = 0.0
    tokens: int = 0


@runtime_checkable
class AskModels(Protocol):
    """Asks models, with a cache: equal questions of a run are sent once, also after a resume."""

    async def __call__(self, question: Question) -> Reply:
        """The answer, never later than the deadline."""
        ...

    async def score(self, scoring: Scoring) -> Reply:
        """The log-probability of a continuation under the policy; `REFUSED` where it does not fit the context."""
        ...

    async def sample(self, continuation: Continuation) -> Reply:
        """A continuation by the policy; `REFUSED` where the context leaves no room for one."""
        ...

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens of the policy."""
        ...


async def each(calls: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of concurrent calls, in their order."""
    async with TaskGroup() as group:
        tasks = [group.create_task(call) for call in calls]
    return [task.result() for task in tasks]


class Voted(Protocol):
    """The settings of a piece whose values are votes of a model."""

    @property
    def n(self) -> int:
        """Number of votes."""
        ...

    @property
    def max_tokens(self) -> int:
        """Maximum length of an answer."""
        ...

    @property
    def temperature(self) -> float:
        """Of the sampling."""
        ...

    @property
    def deadline_s(self) -> float:
        """Maximum duration of an answer, in seconds."""
        ...


class QuestionSettings(Voted, Protocol):
    """The settings of a piece with questions to the model of a role."""

    @property
    def system(self) -> str:
        """The system prompt."""
        ...

    @property
    def role(self) -> str:
        """The role whose model answers."""
        ...


def question_of(piece: QuestionSettings, text: str) -> Question:
    """The question with this user message, and a piece's settings."""
    return Question(
        text=text,
        system=piece.system,
        role=piece.role,
        max_tokens=piece.max_tokens,
        temperature=piece.temperature,
        deadline_s=piece.deadline_s,
    )


def check_votes(piece: Voted) -> None:
    """Check the settings of votes.

    Raises:
        ValueError: names the first setting that is out of range.
    """
    name = type(piece).__name__
    if piece.n < 1:
        raise ValueError(f"{name}.n: got {piece.n}; need at least 1")
    if piece.max_tokens < 1:
        raise ValueError(f"{name}.max_tokens: got {piece.max_tokens}; need at least 1")
    if not piece.temperature >= 0:
        raise ValueError(f"{name}.temperature: got {piece.temperature}; need 0 or more")
    if not piece.deadline_s > 0:
        raise ValueError(f"{name}.deadline_s: got {piece.deadline_s}; need more than 0 seconds")


async def ask_votes(ask: AskModels, question: Question, read: Reader[float], n: int) -> Entry:
    """The mean of `n` votes. A vote without a value leaves the mean; without any vote there is no value.

    Args:
        ask: Sends a question to its model.
        question: The question; each vote has a number and so a seed of its own.
        read: Parses the answer.
        n: Number of votes.
    """
    replies = await each(ask(replace(question, vote=vote)) for vote in range(n))
    values = [read(reply.text) if reply.verdict is Verdict.OK else None for reply in replies]
    known = [value for value in values if value is not None]
    questions, tokens = len(replies), sum(reply.tokens for reply in replies)
    texts = tuple(reply.text for reply in replies)
    if known:
        return Entry(
            value=sum(known) / len(known),
            verdict=Verdict.OK,
            votes=len(known),
            questions=questions,
            tokens=tokens,
            texts=texts,
        )
    verdict = Verdict.UNPARSED if replies[-1].verdict is Verdict.OK else replies[-1].verdict
    return Entry(verdict=verdict, questions=questions, tokens=tokens, texts=texts)
