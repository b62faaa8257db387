"""Questions to an agent's engine: what they tell of a place, and how their answers are read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Protocol, TypeVar, runtime_checkable

STORY = frozenset({"instructions", "turns", "observation"})
"""The places that every prompt may use: what the agent was told first, what happened, and what it reads now."""

Read = TypeVar("Read", covariant=True)


@runtime_checkable
class Reader(Protocol[Read]):
    """Finds the answer in what an engine wrote."""

    def __call__(self, text: str) -> Read | None:
        """The answer; None when there is none in the form that was asked for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelParser:
    """Answers that are one of a few words, and what each is worth.

    Of the words that occur in a text, as whole words in any case, the last counts, and the longest of those that end
    there: "No, but on track." is "on track".

    Attributes:
        worth: By word, at least one.
    """

    worth: Mapping[str, float] = field(default_factory=lambda: {"yes": 1.0, "on track": 0.5, "no": 0.0})

    def __post_init__(self) -> None:
        if not self.worth or not all(self.worth):
            raise ValueError(
                f"PathTokens.worth: got {dict(self.worth)}; need at least one word, and none that is empty"
            )

    def __call__(self, text: str) -> float | None:
        """What the answer is worth."""
        said = text.casefold()
        found = [
            (place.end(), len(word), worth)
            for word, worth in self.worth.items()
            for place in re.finditer(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", said)
        ]
        return max(found)[2] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberParser:
    """Answers that are a number in a range, of which the lowest is worth 0 and the highest 1.

    The last number of a text counts: "8", "8/10" and "8 out of 10" are .8 with a range from 0 to 10. One that lies
    outside of the range is no answer.

    Attributes:
        low: The lowest.
        high: The highest, above it.
    """

    low: float = 0.0
    high: float = 10.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"NumberParser: got low={self.low}, high={self.high}; need high above low")

    def __call__(self, text: str) -> float | None:
        """What the answer is worth."""
        found = re.findall(r"(?<![\w.])(-?\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*\d+(?:\.\d+)?)?", text)
        number = float(found[-1]) if found else self.low - 1
        return (number - self.low) / (self.high - self.low) if self.low <= number <= self.high else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Answers that order things by their numbers, the best first: "2, 1, 3", and the first of them alone: "2".

    Attributes:
        count: How many things there are, numbered from 1.
        all: Whether all of them are to be ordered.
    """

    count: int
    all: bool = False

    def __call__(self, text: str) -> tuple[int, ...] | None:
        """The order, counted from 0."""
        named = tuple(dict.fromkeys(int(number) - 1 for number in re.findall(r"\d+", text)))
        known = set(named) <= set(range(self.count))
        return named if named and known and (len(named) == self.count or not self.all) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Answers in words of their own: all that is written; nothing is no answer."""

    def __call__(self, text: str) -> str | None:
        """The answer."""
        return text.strip() or None


def check_places(owner: str, prompt: str, *more: str) -> None:
    """See that a prompt has no place that nobody fills: `STORY`, and `more`.

    Raises:
        ValueError: when it has; braces that are meant as such are written twice.
    """
    places = STORY | set(more)
    try:
        asked = {name for _, name, _, _ in Formatter().parse(prompt) if name is not None}
    except ValueError as error:
        raise ValueError(f"{owner}: got {prompt!r} ({error}); need braces in pairs, or doubled") from error
    if asked - places:
        raise ValueError(f"{owner}: got the places {sorted(asked - places)}; need some of {sorted(places)}")


def story(instructions: str, past: Sequence[tuple[str, str]], observation: str) -> dict[str, str]:
    """What there is to say of a place, by the names in `STORY`; `past` are observations and what was done then."""
    turns = "\n".join(f"{read}\n> {action}" for read, action in past)
    return {"instructions": instructions, "turns": turns, "observation": observation}
