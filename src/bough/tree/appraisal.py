"""Columns of an appraiser: a value for some nodes of a tree, each with a verdict."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bough.tree.column import column, columns_of


class Verdict(IntEnum):
    """The result of a question, or of all votes on an entry."""

    NONE = 0
    """Nothing was asked about this node."""
    OK = 1
    """The answer has a value."""
    UNPARSED = 2
    """The answer does not have the required form."""
    LATE = 3
    """There was no answer before the deadline."""
    REFUSED = 4
    """The engine returned no answer: a fault, or an aborted completion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The value of one node.

    Attributes:
        value: The mean over the votes with verdict `OK`; nan without any.
        verdict: `OK` with a value; else the verdict of the last vote.
        votes: Number of votes with verdict `OK`.
        questions: Number of votes.
        tokens: Sampled tokens of all answers.
        texts: The answers, for people.
    """

    value: float = math.nan
    verdict: Verdict = Verdict.NONE
    votes: int = 0
    questions: int = 0
    tokens: int = 0
    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if math.isfinite(self.value) != (self.verdict is Verdict.OK):
            raise ValueError(
                f"Entry: got value={self.value} with the verdict {self.verdict.name}; need a finite value with OK, and "
                "nan with every other verdict"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Appraisal:
    """One column of an appraiser for a tree with N nodes.

    Attributes:
        value: [N] float64; nan where the verdict is not `OK`.
        verdict: [N] int8, a `Verdict`.
        votes: [N] int32, number of votes with a value.
        questions: [N] int32, number of votes.
        tokens: [N] int32, sampled tokens of all answers.
    """

    value: NDArray[np.floating] = column(np.float64)
    verdict: NDArray[np.signedinteger] = column(np.int8)
    votes: NDArray[np.signedinteger] = column(np.int32)
    questions: NDArray[np.signedinteger] = column(np.int32)
    tokens: NDArray[np.signedinteger] = column(np.int32)

    @staticmethod
    def of(entries: Mapping[int, Entry], nodes: int) -> "Appraisal":
        """The columns of some entries, by node, in a tree of `nodes` nodes."""
        rows = [entries.get(node, Entry()) for node in range(nodes)]
        made = columns_of(Appraisal).items()
        arrays: dict[str, Any] = {
            name: np.array([getattr(row, name) for row in rows], dtype=each.dtype) for name, each in made
        }
        return Appraisal(**arrays)

    def take(self, nodes: NDArray[Any]) -> "Appraisal":
        """The columns of some nodes."""
        return Appraisal(**{name: getattr(self, name)[nodes] for name in columns_of(Appraisal)})

    def equals(self, other: "Appraisal") -> bool:
        """Whether both are the same, bit for bit (nan equals nan)."""
        return self.record() == other.record()

    def record(self) -> dict[str, list[float]]:
        """The entries that were asked about, as JSON data: [value, verdict, votes, questions, tokens] by node."""
        return {
            str(node): [
                float(self.value[node]) if self.verdict[node] == Verdict.OK else 0.0,
                *(int(column[node]) for column in (self.verdict, self.votes, self.questions, self.tokens)),
            ]
            for node in np.flatnonzero(self.verdict != Verdict.NONE).tolist()
        }

    @staticmethod
    def read(record: Mapping[str, list[float]], nodes: int) -> "Appraisal":
        """The columns from the result of `record`."""
        entries = {
            int(node): Entry(
                value=value if verdict == Verdict.OK else math.nan,
                verdict=Verdict(int(verdict)),
                votes=int(votes),
                questions=int(questions),
                tokens=int(tokens),
            )
            for node, (value, verdict, votes, questions, tokens) in record.items()
        }
        return Appraisal.of(entries, nodes)
