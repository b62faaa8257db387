"""The filter of tasks that a judge accepts."""

from collections.abc import Sequence
from typing import Annotated

from bough.curate.filter import FilterResult
from bough.needs import Need, appraised
from bough.piece import Between, piece
from bough.tree import Credited, Verdict, appraisal_of, groups


@piece
class AcceptedTasks:
    """Keeps the groups of tasks whose value in a column of `TaskJudge` is high enough (FunRL, arXiv 2508.05118).

    Others are dropped under "refused_task", and tasks without a readable verdict under "unjudged_task".

    Attributes:
        column: The column, with a value at the root.
        min_value: Lowest value of a kept task, in (0, 1].
    """

    column: str = "task"
    min_value: Annotated[float, Between(0, 1, "a number above 0, at most 1", above=True)] = 0.5

    @property
    def needs(self) -> frozenset[Need]:
        """The column."""
        return frozenset({appraised(self.column)})

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        """Drop groups.

        Raises:
            StageError: when a tree lacks the column.
        """
        kept: list[Credited] = []
        dropped = {"refused_task": 0, "unjudged_task": 0}
        for group in groups(credited):
            column = appraisal_of(group[0].tree, self.column, "AcceptedTasks.column")
            if column.verdict[0] != Verdict.OK:
                dropped["unjudged_task"] += 1
            elif column.value[0] < self.min_value:
                dropped["refused_task"] += 1
            else:
                kept.extend(group)
        return FilterResult(trees=tuple(kept), dropped=dropped)
