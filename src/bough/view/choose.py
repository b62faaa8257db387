"""Chooses groups for the report: the best, the worst, and the most divided one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bough.tree import Credited, Ternary, counted

Group = Sequence[Credited]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Three groups out of many; in a small run they may be the same.

    Attributes:
        best: The highest mean return.
        worst: The lowest mean return.
        divided: The success rate nearest to one half.
    """

    best: Group
    worst: Group
    divided: Group


def choose_groups(groups: Sequence[Group]) -> Chosen | None:
    """The chosen groups; None when no group has a counted path.

    Means and rates are over the counted paths. Of equal groups, the one with more counted paths is taken, then the
    earliest.
    """
    seen = [group for group in groups if returns(group)]
    if not seen:
        return None
    return Chosen(
        best=max(seen, key=lambda group: (np.mean(returns(group)), len(returns(group)))),
        worst=min(seen, key=lambda group: (np.mean(returns(group)), -len(returns(group)))),
        divided=min(seen, key=lambda group: (abs(np.mean(successes(group)) - 0.5), -len(successes(group)))),
    )


def returns(group: Group) -> list[float]:
    """The return of each counted path."""
    return [float(value) for credited in group for value in credited.rewarded.returns()]


def successes(group: Group) -> list[bool]:
    """Whether each counted path solved the task."""
    return [bool(each.tree.success[leaf] == Ternary.YES) for each in group for leaf in counted(each.tree)]
