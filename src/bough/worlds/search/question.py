"""Questions over a corpus, with the evidence for their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from bough.tree import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A fact that the answer needs.

    Attributes:
        document: Number of the document that states it.
        text: The sentence that states it; "" for the whole document.
        query: The oracle's query for the document.
        after: Indices of the evidence whose values the query contains.
        entity: The required entity that the fact names; "" for none.
    """

    document: int
    text: str = ""
    query: str = ""
    after: tuple[int, ...] = ()
    entity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question.

    Attributes:
        text: The question.
        answers: The required answers, more than one for a question about a set; each with its accepted spellings, the
            first of which the oracle uses.
        evidence: In an order in which the oracle can find it; empty where it is unknown.
        content: The canonical form, which names the task.
    """

    text: str
    answers: tuple[tuple[str, ...], ...]
    evidence: tuple[Evidence, ...] = ()
    content: str

    def data(self) -> dict[str, object]:
        """The data of the question's task."""
        return {
            "question": self.text,
            "answers": [[*each] for each in self.answers],
            "evidence": [
                {"document": e.document, "text": e.text, "query": e.query, "after": [*e.after], "entity": e.entity}
                for e in self.evidence
            ],
        }


def read_question(task: Task) -> Question:
    """The question of a task.

    Raises:
        ValueError: when the task has no question or no answers.
    """
    text, answers = task.data.get("question"), task.data.get("answers")
    listed = cast("Sequence[object]", answers) if isinstance(answers, list | tuple) else ()
    spellings = tuple(map(_spellings, listed))
    if not isinstance(text, str) or not spellings or not all(spellings):
        raise ValueError(
            f"task {task.id}: got the question {text!r} with the answers {answers!r}; need a text, and a list of "
            "answers, each a text or a list of spellings"
        )
    rows = cast("Sequence[Mapping[str, Any]]", task.data.get("evidence") or ())
    evidence = tuple(replace(Evidence(**row), after=tuple(row.get("after", ()))) for row in rows)
    return Question(text=text, answers=spellings, evidence=evidence, content=task.id)


def _spellings(answer: object) -> tuple[str, ...]:
    """The spellings of an answer: a text, or a list of texts."""
    if isinstance(answer, str):
        return (answer,)
    return tuple(map(str, cast("Sequence[object]", answer))) if isinstance(answer, list | tuple) else ()
