"""What rewards and checks paid for in a step: the best-paid episodes, and those about which two of them disagree."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from bough.tree import Credited, Floats, Ints, Outcome, Ternary, Tree, counted, sum_to_root
from bough.viewer.stored_trees import TreeName
from bough.viewer.turn_nodes import number

Record: TypeAlias = dict[str, object]

SUCCESS = "success"
"""The kind, and the name, of the column with the success of each episode."""

MOST = 8
"""Episodes in the list of a column."""

MOST_BETWEEN = 3
"""Episodes, or pairs of episodes, about which two columns disagree, in a list."""

MOST_OF_TASK = 256
"""Episodes of a task that are compared with each other, the first ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """What a reward, a check or success has for each episode.

    Attributes:
        name: Its name.
        kind: "reward", "check" or "success".
        total: [P] the sum over each episode; nan where there is none.
    """

    name: str
    kind: str
    total: Floats

    @property
    def equal(self) -> bool:
        """Whether all episodes have the same, of several; or none has any."""
        known = self.total[~np.isnan(self.total)]
        return not len(known) or (len(known) > 1 and bool(np.ptp(known) == 0))

    @property
    def size(self) -> float:
        """The standard deviation over the episodes, by which differences are compared; 1 without one."""
        known = self.total[~np.isnan(self.total)]
        return float(known.std()) or 1.0 if len(known) else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Episodes:
    """The counted episodes of a step, P of them.

    Attributes:
        name: [P] the tree of each.
        tree: [P] the same.
        leaf: [P] its last node.
        tasks: For each task the numbers of its episodes.
        columns: Rewards, checks and success.
    """

    name: Sequence[str]
    tree: Sequence[Tree]
    leaf: Sequence[int]
    tasks: Sequence[Ints]
    columns: Sequence[_Column]

    def record(self, at: int) -> Record:
        """An episode as JSON data, with what each column has for it."""
        tree, leaf = self.tree[at], self.leaf[at]
        return {
            "tree": self.name[at],
            "node": leaf,
            "task": tree.task.id,
            "outcome": Outcome(int(tree.outcome[leaf])).name.lower(),
            "success": Ternary(int(tree.success[leaf])).known,
            "totals": [number(float(column.total[at])) for column in self.columns],
        }


def reward_audit(step: int, trees: Sequence[Credited]) -> Record:
    """The rewards and checks of a step beside each other, as JSON data.

        columns   those of `totals`: each with its name, and its kind: "reward", "check" or "success"
        best      for each reward and check the episodes with the highest sums; none where all are `equal`
        between   for two columns the `pairs` of episodes of one task that both order, how many of them `alike`;
                  `opposed`, pairs that they order in opposite ways; and `signs`, episodes to which one gives a positive
                  sum and the other a negative one: the clearest, in standard deviations of the columns

    Args:
        step: The step.
        trees: Its trees.
    """
    episodes = _episodes(step, trees)
    return {
        "columns": [{"name": column.name, "kind": column.kind} for column in episodes.columns],
        "best": [
            {
                "column": at,
                "equal": column.equal,
                "episodes": [] if column.equal else [episodes.record(each) for each in _highest(column.total, MOST)],
            }
            for at, column in enumerate(episodes.columns)
            if column.kind != SUCCESS
        ],
        "between": [_between(episodes, *two) for two in combinations(range(len(episodes.columns)), 2)],
    }


def _episodes(step: int, trees: Sequence[Credited]) -> _Episodes:
    ends = [counted(each.tree) for each in trees]
    of_task: dict[str, list[int]] = {}
    for at, task in enumerate(each.tree.task.id for each, end in zip(trees, ends, strict=True) for _ in end):
        of_task.setdefault(task, []).append(at)
    columns = [
        _Column(name=name, kind=kind, total=_totals(trees, ends, kind, name))
        for kind, named in (
            ("reward", [each.rewarded.channels for each in trees]),
            ("check", [each.rewarded.checks for each in trees]),
        )
        for name in dict.fromkeys(name for own in named for name in own)
    ]
    success = [_success(each.tree, end) for each, end in zip(trees, ends, strict=True)]
    columns.append(_Column(name=SUCCESS, kind=SUCCESS, total=np.concatenate([np.zeros(0), *success])))
    return _Episodes(
        name=[str(TreeName(step=step, index=at)) for at, end in enumerate(ends) for _ in end],
        tree=[each.tree for each, end in zip(trees, ends, strict=True) for _ in end],
        leaf=[leaf for end in ends for leaf in end.tolist()],
        tasks=[np.asarray(each) for each in of_task.values()],
        columns=columns,
    )


def _totals(trees: Sequence[Credited], ends: Sequence[Ints], kind: str, name: str) -> Floats:
    """[P] the sum of a channel or check over each episode; nan where its tree has none."""
    found: list[Floats] = [np.zeros(0)]
    for each, end in zip(trees, ends, strict=True):
        own = (each.rewarded.channels if kind == "reward" else each.rewarded.checks).get(name)
        found.append(np.full(len(end), np.nan) if own is None else sum_to_root(each.tree, own)[end])
    return np.concatenate(found)


def _success(tree: Tree, ends: Ints) -> Floats:
    known = np.isin(tree.success[ends], (Ternary.YES, Ternary.NO))
    return np.where(known, tree.success[ends] == Ternary.YES, np.nan)


def _highest(total: Floats, most: int) -> list[int]:
    """The episodes with the highest sums, those of the first trees before others with the same."""
    order = np.argsort(-total, kind="stable")
    return order[~np.isnan(total[order])][:most].tolist()


def _between(episodes: _Episodes, one: int, other: int) -> Record:
    """How two columns agree; see `reward_audit`."""
    first, second = episodes.columns[one], episodes.columns[other]
    alike = opposite = 0
    # By clearness the clearest pair of each task.
    clearest: list[tuple[float, int, int]] = []
    for task in episodes.tasks:
        members = task[:MOST_OF_TASK]
        a, b = first.total[members] / first.size, second.total[members] / second.size
        a, b = a[:, None] - a, b[:, None] - b
        with np.errstate(invalid="ignore"):
            opposed = (a > 0) & (b < 0)
            alike += int(((a > 0) & (b > 0)).sum())
        opposite += int(opposed.sum())
        if opposed.any():
            clear = np.where(opposed, np.minimum(np.abs(a), np.abs(b)), -1.0)
            left, right = divmod(int(clear.argmax()), len(members))
            clearest.append((float(clear.max()), int(members[left]), int(members[right])))
    clearest.sort(key=lambda each: -each[0])
    return {
        "one": one,
        "other": other,
        "pairs": alike + opposite,
        "alike": alike,
        "opposed": [
            {"by_one": episodes.record(left), "by_other": episodes.record(right)}
            for _, left, right in clearest[:MOST_BETWEEN]
        ],
        "signs": [episodes.record(at) for at in _of_opposite_signs(first, second)],
    }


def _of_opposite_signs(first: _Column, second: _Column) -> list[int]:
    """The episodes to which two columns give sums of opposite signs, the clearest first."""
    with np.errstate(invalid="ignore"):
        opposed = first.total * second.total < 0
    clear = np.minimum(np.abs(first.total) / first.size, np.abs(second.total) / second.size)
    return _highest(np.where(opposed, clear, np.nan), MOST_BETWEEN)
