"""Prompts to an agent's engine: their fields, and the parsers of answers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Protocol, TypeVar, cast, runtime_checkable

from bough.integers import integers
from bough.piece import Bounds, piece

PROMPT_FIELDS = frozenset({"instructions", "turns", "observation"})
"""The placeholders that every prompt may use: the instructions, the turns so far, and the observation."""

Read = TypeVar("Read", covariant=True)


@runtime_checkable
class AnswerParser(Protocol[Read]):
    """Parses an engine's answer."""

    def __call__(self, text: str) -> Read | None:
        """The parsed answer; None when the text does not have the required form."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelParser:
    """Parses an answer that is one of a few labels, and returns the score of the label.

    Labels match as whole words in any case. The last match counts, and of matches with the same end the longest: "No,
    but on track." is "on track".

    Attributes:
        scores: Score by label, at least one.
    """

    scores: Mapping[str, float] = field(default_factory=lambda: {"yes": 1.0, "on track": 0.5, "no": 0.0})

    def __post_init__(self) -> None:
        if not self.scores or not all(self.scores):
            raise ValueError(
                f"LabelParser.scores: got {dict(self.scores)}; need at least one label, and none that is empty"
            )

    def __call__(self, text: str) -> float | None:
        """The value of the answer."""
        folded = text.casefold()
        found = [
            (match.end(), len(label), score)
            for label, score in self.scores.items()
            for match in re.finditer(rf"(?<!\w){re.escape(label.casefold())}(?!\w)", folded)
        ]
        return max(found)[2] if found else None


@piece
class NumberParser:
    """Parses an answer that is a number in a range; the lowest has value 0 and the highest 1.

    The last number of a text counts: "8", "8/10" and "8 out of 10" are .8 with a range from 0 to 10. A number outside
    of the range is not an answer.

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
        """The value of the answer."""
        found = re.findall(r"(?<![\w.])(-?\d+(?:\.\d+)?)(?:\s*(?:/|out of)\s*\d+(?:\.\d+)?)?", text)
        number = float(found[-1]) if found else self.low - 1
        return (number - self.low) / (self.high - self.low) if self.low <= number <= self.high else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Parses an answer that ranks options by number, the best first ("2, 1, 3"), or names the best alone ("2").

    Attributes:
        count: Number of options, numbered from 1.
        all: Whether the answer must rank all of them.
    """

    count: int
    all: bool = False

    def __call__(self, text: str) -> tuple[int, ...] | None:
        """The ranking, counted from 0."""
        named = tuple(dict.fromkeys(number - 1 for number in integers(text)))
        known = set(named) <= set(range(self.count))
        return named if named and known and (len(named) == self.count or not self.all) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Free text: the whole answer; an empty text is not an answer."""

    def __call__(self, text: str) -> str | None:
        """The answer."""
        return text.strip() or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Parses a list with one item a line, such as a plan, and drops numbers and dashes before the items.

    Attributes:
        max_items: Maximum number of items; None for all.
    """

    max_items: int | None = None

    def __call__(self, text: str) -> tuple[str, ...] | None:
        """The items; None for an empty list."""
        items = (re.sub(r"^\s*(\d+[.):]|[-*])\s*", "", line).strip() for line in text.splitlines())
        return tuple(item for item in items if item)[: self.max_items] or None


def Placeholders(*allowed: str, prompt_fields: bool = True, required: Sequence[str] = ()) -> Bounds:  # noqa: N802
    """Prompts with the placeholders `allowed`, `required` and `PROMPT_FIELDS`; literal braces are doubled.

    Args:
        allowed: Placeholders that a prompt may have.
        prompt_fields: Whether it may have those of `PROMPT_FIELDS`, too.
        required: Placeholders that it must have.
    """
    known = {*allowed, *required, *(PROMPT_FIELDS if prompt_fields else ())}

    def wrong(value: object) -> str:
        try:
            found = {name for _, name, _, _ in Formatter().parse(cast("str", value)) if name is not None}
        except (TypeError, ValueError) as error:
            return f"got {value!r} ({error}); need braces in pairs, or doubled"
        if found - known:
            return f"got the placeholders {sorted(found - known)}; need some of {sorted(known)}"
        lacking = [name for name in required if name not in found]
        return f"got {value!r}; need the placeholder {{{lacking[0]}}} in it" if lacking else ""

    return Bounds(" ".join(["placeholders", *(f"{{{name}}}" for name in sorted(known))]), wrong)


def prompt_fields(instructions: str, past: Sequence[tuple[str, str]], observation: str) -> dict[str, str]:
    """The prompt fields by the names in `PROMPT_FIELDS`; `past` are pairs of observation and action."""
    turns = "\n".join(f"{read}\n> {action}" for read, action in past)
    return {"instructions": instructions, "turns": turns, "observation": observation}


def numbered(texts: Iterable[str]) -> str:
    """The texts, each after its number from 1, one a line: "1. go left"."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))
