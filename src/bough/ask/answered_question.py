"""Questions about a node that a model answered, as the info of the node keeps them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from bough.tree import Info, InfoEntry

ASKED = InfoEntry("asked")
"""The answered questions about a node, by kind and number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """A question and its answer.

    Attributes:
        system: The system prompt.
        text: The question.
        answer: The whole answer.
        value: The number that the answer was parsed to; None for text.
    """

    system: str
    text: str
    answer: str
    value: float | None = None


def answered_questions_in(info: Info, name: str) -> list[AnsweredQuestion]:
    """Returns the kept questions of one kind, such as "judge", in the order of their numbers."""
    kept = cast("Mapping[str, Mapping[str, Any]]", ASKED.at(info) or {})
    names = [each for each in kept if each.rpartition(" ")[0] == name]
    return [AnsweredQuestion(**kept[each]) for each in sorted(names, key=lambda each: int(each.rpartition(" ")[2]))]


def store_question(info: dict[str, object], name: str, number: int, question: AnsweredQuestion) -> None:
    """Add a question of a kind to the info of a node."""
    kept = cast("Mapping[str, object]", ASKED.at(info) or {})
    ASKED.write(info, {**kept, f"{name} {number}": asdict(question)})
