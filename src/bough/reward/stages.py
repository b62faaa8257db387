"""The stages of `StagedReward`: how far a path meets one demand, from 0 to 1."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np

from bough.needs import Need, appraised, task_field
from bough.reward.bleu import bleu
from bough.tree import (
    Bools,
    Floats,
    Kind,
    StageError,
    Ternary,
    Tree,
    Verdict,
    appraisal_of,
    calls_in,
    counted,
    ends_turn,
    sum_to_root,
    text_in,
)
from bough.tree.endings import last_action, solved


@runtime_checkable
class Stage(Protocol):
    """A demand on paths: a frozen dataclass."""

    def __call__(self, tree: Tree) -> Floats:
        """[P], in [0, 1]: how far each counted path meets it, 1 wholly."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WellFormed:
    """The share of a path's actions that the parser can parse."""

    def __call__(self, tree: Tree) -> Floats:
        """[P]."""
        return _share(tree, tree.well_formed != Ternary.NO)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidActions:
    """The share of a path's actions, such as tool calls, that the environment recognised."""

    def __call__(self, tree: Tree) -> Floats:
        """[P]."""
        return _share(tree, tree.valid != Ternary.NO)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledTool:
    """1 for a path with a call of a tool, else 0."""

    def __call__(self, tree: Tree) -> Floats:
        """[P]."""
        calls = np.asarray([bool(calls_in(info)) for info in tree.info])
        return (sum_to_root(tree, calls)[counted(tree)] > 0).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """1 for a path whose last action is well formed and valid, and not cut off; else 0."""

    def __call__(self, tree: Tree) -> Floats:
        """[P]."""
        last = last_action(tree)[counted(tree)]
        wrong = (tree.well_formed == Ternary.NO) | (tree.valid == Ternary.NO) | (tree.cut_off == Ternary.YES)
        return (~wrong[last] & (tree.kind[last] == Kind.ACTION)).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """1 for a path with success, else 0."""

    def __call__(self, tree: Tree) -> Floats:
        """[P]."""
        return solved(tree)[counted(tree)].astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBleu:
    """The length-aware BLEU (`bough.reward.bleu`) of a path's last action, for short answers.

    Attributes:
        field: The field of `Task.data` with the right answer, or with a list of them, also in lists.
        tag: A pair of tags around the answer, such as "answer"; "" for the whole action.
    """

    field: str = "answers"
    tag: str = ""

    @property
    def needs(self) -> frozenset[Need]:
        """The field with the answers."""
        return frozenset({task_field(self.field)})

    def __call__(self, tree: Tree) -> Floats:
        """[P].

        Raises:
            StageError: when the task has no such field.
        """
        found = tree.task.data.get(self.field)
        if found is None:
            raise StageError(
                f"AnswerBleu.field: got {self.field!r} and a task with the fields {sorted(tree.task.data)} (task "
                f"{tree.task.id}); need the field with the right answers"
            )
        right = _texts(found)
        last: list[int] = last_action(tree)[counted(tree)].tolist()
        return np.asarray([bleu(self._answer(text_in(tree.info[node]) or ""), right) for node in last])

    def _answer(self, text: str) -> str:
        """The part of an action between the last tags."""
        opened, closed = f"<{self.tag}>", f"</{self.tag}>"
        if not self.tag or opened not in text:
            return text
        return text.rpartition(opened)[2].partition(closed)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuality:
    """The value of an appraiser's column at the end of a path, for long answers; kept in [0, 1].

    Attributes:
        column: The column, such as that of `RubricJudge`.
    """

    column: str = "judge"

    @property
    def needs(self) -> frozenset[Need]:
        """The column."""
        return frozenset({appraised(self.column)})

    def __call__(self, tree: Tree) -> Floats:
        """[P].

        Raises:
            StageError: when the tree lacks the column.
        """
        appraisal = appraisal_of(tree, self.column, "JudgedQuality.column")
        ends = counted(tree)
        value = np.where(appraisal.verdict == Verdict.OK, appraisal.value, 0.0)
        return np.clip(value[ends], 0.0, 1.0)


def _texts(found: object) -> list[str]:
    """The texts in a value of JSON: itself, or all in its lists."""
    if isinstance(found, list | tuple):
        return [text for each in cast("Sequence[object]", found) for text in _texts(each)]
    return [str(found)]


def _share(tree: Tree, good: Bools) -> Floats:
    """[P]: the share of the actions of each counted path that are good; 0 for a path without actions."""
    # The columns of an action of several pieces are at its last one.
    acts, ends = ends_turn(tree), counted(tree)
    count = sum_to_root(tree, acts)[ends]
    return sum_to_root(tree, acts & good)[ends] / np.maximum(count, 1)
