"""The answer of a model, with a verdict on whether it can be used."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from bough.ask.prompts import AnswerParser
from bough.tree import Entry, StageError, Verdict

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The result of one request to a model, before it is parsed.

    Attributes:
        verdict: `OK`, `LATE` or `REFUSED`.
        text: The text; with `REFUSED` the reason, "" where there is none.
        logprob: Of a scored text, the mean log-probability of a token, nats.
        probability: Of a scored text, the mean probability of a token.
        entropy: Of a continuation, the mean entropy of the distributions of its tokens, nats.
        tokens: Sampled tokens.
        final: Whether the same request is refused every time, such as one longer than the model's context.
    """

    verdict: Verdict
    text: str = ""
    logprob: float = 0.0
    probability: float = 0.0
    entropy: float = 0.0
    tokens: int = 0
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[Read]):
    """The answers of a model to the votes of one `Query`.

    A vote that is late, refused or not parsed has no value: it enters no mean and no count of votes.

    Attributes:
        verdict: `OK` if any vote has a value, else the verdict of the last one: `UNPARSED`, `LATE` or `REFUSED`.
        values: The parsed values of the votes that have one, in order.
        texts: The text of each vote, for people.
        tokens: Sampled tokens of all votes.
        final: Whether the same query is refused every time.
    """

    verdict: Verdict
    values: tuple[Read, ...] = ()
    texts: tuple[str, ...] = ()
    tokens: int = 0
    final: bool = False

    def __post_init__(self) -> None:
        if bool(self.values) != (self.verdict is Verdict.OK):
            raise StageError(
                f"Answer: got {len(self.values)} values with the verdict {self.verdict.name}; need one or more with "
                "OK, and none with every other verdict"
            )

    @property
    def value(self) -> Read | None:
        """The value of the first vote that has one; None unless the verdict is `OK`."""
        return self.values[0] if self.values else None


def answer_of(replies: Sequence[Reply], read: AnswerParser[Read]) -> Answer[Read]:
    """The answer of a query, from the replies to its votes.

    Args:
        replies: One or more.
        read: Parses the text of a reply.
    """
    parsed = [read(reply.text) if reply.verdict is Verdict.OK else None for reply in replies]
    values = tuple(value for value in parsed if value is not None)
    last = replies[-1]
    missing = Verdict.UNPARSED if last.verdict is Verdict.OK else last.verdict
    return Answer(
        verdict=Verdict.OK if values else missing,
        values=values,
        texts=tuple(reply.text for reply in replies),
        tokens=sum(reply.tokens for reply in replies),
        final=last.final,
    )


def mean_entry(answer: Answer[float]) -> Entry:
    """The mean of the votes as the entry of a column; without a vote it has no value."""
    known = answer.values
    return Entry(
        value=sum(known) / len(known) if known else math.nan,
        verdict=answer.verdict,
        votes=len(known),
        questions=len(answer.texts),
        tokens=answer.tokens,
        texts=answer.texts,
    )
