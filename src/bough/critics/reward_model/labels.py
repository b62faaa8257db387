"""Labelled steps of stored trees: the data of a reward model."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bough.critics.reward_model.settings import Estimate, RewardModel
from bough.tree import (
    Bools,
    Floats,
    Ints,
    PathView,
    Rewarded,
    Ternary,
    Tree,
    TruncatedBy,
    context,
    join,
    path_view,
    score_in,
)

COMPLETE = (
    TruncatedBy.NOTHING,
    TruncatedBy.TURNS,
    TruncatedBy.TOKENS,
    TruncatedBy.CONTEXT,
    TruncatedBy.ENVIRONMENT,
    TruncatedBy.REPETITION,
)
"""Why a completion may end. Other reasons are those of a search or its budget: success was still possible."""


class NothingToLearn(ValueError):
    """Trees without labels that a reward model could learn, or of one task."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledSteps:
    """n steps, each text once for each task, and P completions of tasks.

    Attributes:
        text: n arrays, int32: the tokens of context and action; of the context alone for a prompt.
        label: [n] float64; nan without one.
        task: [n] int64, the index of the step's task in `tasks`.
        tasks: The ids of the tasks; a task from a later start has that of the whole task.
        better: [m] int64, the better step of each pair of siblings.
        worse: [m] int64.
        path_steps: For each completion the indices of its steps, first to last.
        path_task: [P] int64.
        success: [P] bool.
    """

    text: tuple[Ints, ...]
    label: Floats
    task: Ints
    tasks: tuple[str, ...]
    better: Ints
    worse: Ints
    path_steps: tuple[tuple[int, ...], ...]
    path_task: Ints
    success: Bools

    def of_tasks(self, chosen: Bools) -> "LabelledSteps":
        """The steps of some tasks [tasks]; indices of tasks stay."""
        kept = chosen[self.task]
        place = np.cumsum(kept) - 1
        pairs, paths = kept[self.better], np.flatnonzero(chosen[self.path_task]).tolist()
        return LabelledSteps(
            text=tuple(each for each, keep in zip(self.text, kept.tolist(), strict=True) if keep),
            label=self.label[kept],
            task=self.task[kept],
            tasks=self.tasks,
            better=place[self.better[pairs]],
            worse=place[self.worse[pairs]],
            path_steps=tuple(tuple(int(place[step]) for step in self.path_steps[path]) for path in paths),
            path_task=self.path_task[paths],
            success=self.success[paths],
        )


@dataclass(slots=True, kw_only=True)
class _Step:
    """A step while trees are read: the sum of its labels, their weight, and the tokens of its context."""

    text: Ints
    task: int
    before: bytes
    total: float = 0.0
    weight: float = 0.0


@dataclass(slots=True, kw_only=True)
class _Table:
    """The steps, and the completions."""

    steps: list[_Step] = field(default_factory=list[_Step])
    index: dict[tuple[int, bytes], int] = field(default_factory=dict[tuple[int, bytes], int])
    tasks: dict[str, int] = field(default_factory=dict[str, int])
    paths: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    path_task: list[int] = field(default_factory=list[int])
    success: list[bool] = field(default_factory=list[bool])

    def step(self, text: Ints, read: int, task: int) -> int:
        """The index of the step of a task with a text, which is added if it is new."""
        index = self.index.setdefault((task, text.tobytes()), len(self.steps))
        if index == len(self.steps):
            self.steps.append(_Step(text=text, task=task, before=text[:read].tobytes()))
        return index

    def label(self, index: int, label: float, weight: float) -> None:
        """Add a label to a step; one of weight 0 is unknown."""
        if weight:
            step = self.steps[index]
            step.total, step.weight = step.total + weight * label, step.weight + weight


def steps_of(trees: Sequence[Tree], settings: RewardModel) -> LabelledSteps:
    """The labelled steps of trees.

    Raises:
        ValueError: when a label is outside [0, 1] and the loss needs a probability.
    """
    table = _Table()
    for tree in trees:
        _read(tree, settings, table)
    found = table.steps
    label = np.asarray([each.total / each.weight if each.weight else np.nan for each in found], dtype=np.float64)
    if settings.labels == "hard":
        label = np.where(np.isnan(label), np.nan, label > 0)
    if not settings.ranks and np.any((label < 0) | (label > 1)):
        raise ValueError(
            f"RewardModel.estimate: got labels from {np.nanmin(label):.3g} to {np.nanmax(label):.3g} by "
            f"{settings.estimate!r}; need labels in [0, 1]: estimate='share', or labels='pairs'"
        )
    better, worse = _pairs(found, label, settings.gap)
    return LabelledSteps(
        text=tuple(each.text for each in found),
        label=label,
        task=np.asarray([each.task for each in found], dtype=np.int64),
        tasks=tuple(table.tasks),
        better=better,
        worse=worse,
        path_steps=tuple(table.paths),
        path_task=np.asarray(table.path_task, dtype=np.int64),
        success=np.asarray(table.success, dtype=np.bool_),
    )


def turn_texts(tree: Tree, view: PathView) -> dict[int, tuple[Ints, int]]:
    """By the last node of each turn of a tree, its text, and the number of tokens of its context."""
    found: dict[int, tuple[Ints, int]] = {}
    for node, first in zip(view.node.tolist(), view.first.tolist(), strict=True):
        if node not in found:
            read = len(context(tree, first))
            found[node] = np.concatenate([context(tree, node), tree.tokens_of(node)]), read
    return found


def split_tasks(steps: LabelledSteps, share: float, seed: int) -> Bools:
    """[tasks] bool: the held-out tasks, at least one and not all.

    Raises:
        NothingToLearn: when there is one task or none.
    """
    count = len(steps.tasks)
    if count < 2:
        raise NothingToLearn(
            f"RewardModel.held_out: got trees of {count} tasks; need at least 2, since the report is of other tasks"
        )
    chosen = np.zeros(count, dtype=np.bool_)
    order = np.random.default_rng(seed).permutation(count)
    chosen[order[: min(count - 1, max(1, round(share * count)))]] = True
    return chosen


def _read(tree: Tree, settings: RewardModel, table: _Table) -> None:
    """Add the steps and completions of a tree."""
    view = path_view([Rewarded(tree=tree, channels={})])
    complete = np.isin(join(view.rewarded, "truncated_by")[view.leaf], COMPLETE)
    won = (join(view.rewarded, "success")[view.leaf] == Ternary.YES) & complete
    task = table.tasks.setdefault(tree.task.base_id, len(table.tasks))
    through = np.bincount(view.node, complete[view.path], minlength=tree.nodes)
    wins = np.bincount(view.node, won[view.path], minlength=tree.nodes)
    index: dict[int, int] = {}
    for node, (text, read) in turn_texts(tree, view).items():
        index[node] = table.step(text, read, task)
        if settings.labels != "outcome":
            table.label(index[node], *_label(tree, node, settings.estimate, float(wins[node]), float(through[node])))
    if settings.labels in ("soft", "hard") and settings.estimate == "share" and complete.any():
        prompt = tree.tokens_of(0)
        weight = float(complete.sum())
        table.label(table.step(prompt, len(prompt), task), float(won.sum()) / weight, weight)
    for path in np.flatnonzero(complete & (view.turns > 0)).tolist():
        nodes: NDArray[np.int64] = view.node[view.start[path] : view.start[path + 1]]
        table.paths.append(tuple(index[node] for node in nodes.tolist()))
        table.path_task.append(task)
        table.success.append(bool(won[path]))
        if settings.labels == "outcome":
            table.label(table.paths[-1][-1], float(won[path]), 1.0)


def _label(tree: Tree, node: int, estimate: Estimate, wins: float, through: float) -> tuple[float, float]:
    """The label of a step by its node, and the label's weight; nan and 0 without one."""
    if estimate == "share":
        return (wins / through if through else np.nan), through
    label = tree.value[node] if estimate == "value" else score_in(tree.info[node])
    return (float(label), 1.0) if np.isfinite(label) else (np.nan, 0.0)


def _pairs(steps: Sequence[_Step], label: Floats, gap: float) -> tuple[Ints, Ints]:
    """[m] and [m] int64: the better and the worse step of each pair of steps with one context."""
    siblings: dict[tuple[int, bytes], list[int]] = {}
    for at, step in enumerate(steps):
        if not np.isnan(label[at]) and len(step.before) < step.text.nbytes:
            siblings.setdefault((step.task, step.before), []).append(at)
    pairs = [
        (one, other)
        for group in siblings.values()
        for one in group
        for other in group
        # Shares are ratios of small numbers: a difference of exactly `gap` counts.
        if label[one] - label[other] >= gap - 1e-9
    ]
    columns = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    return columns[0], columns[1]
