"""The smallest or mean count of the successful paths of each task, across steps: the state of two hooks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from bough.hooks.hook import BatchHook, HookSetup
from bough.tree import Bools, Floats, Ints, Rewarded, Tree, counted, groups, sum_to_root
from bough.tree.endings import path_reward_nodes, solved

Count: TypeAlias = Callable[[Tree], Floats | Ints]
"""[N]: what is counted at each node; a path's count is the sum over its nodes."""

Pay: TypeAlias = Callable[[Floats, Bools, float | None], Floats]
"""[P]: the reward of paths by their counts [P], whether they succeed [P], and the record so far, None before any."""

History: TypeAlias = Literal["min", "mean"]
"""The record of a task: the smallest count of its successful paths so far, or the mean of all of them."""


@dataclass(slots=True, kw_only=True)
class SuccessRecords:
    """The state of the hook.

    Attributes:
        records: By task id, the smallest count among its successful paths so far, or the mean.
        successes: By task id, the number of its successful paths so far.
    """

    records: dict[str, float] = field(default_factory=dict[str, float])
    successes: dict[str, int] = field(default_factory=dict[str, int])


class SuccessRecordState(BatchHook[object]):
    """The record of each task, and the reward that compares paths with it.

    The record is read before a batch and updated after it, so the order of paths does not matter.
    """

    def __init__(
        self,
        settings: object,
        setup: HookSetup,
        *,
        channel: str,
        count: Count,
        pay: Pay,
        own_group: bool = False,
        history: History = "min",
    ) -> None:
        """Begin without records.

        Args:
            settings: The settings of the hook.
            setup: What it may use.
            channel: Name of the reward channel, also of the metrics.
            count: What is counted.
            pay: The reward of paths.
            own_group: Whether the paths of the present group are part of the record that they are compared with.
            history: Whether the record is the smallest count or the mean.
        """
        super().__init__(settings, setup)
        self.data: SuccessRecords = SuccessRecords()
        self._history = history
        self._channel, self._count, self._pay, self._own_group = channel, count, pay, own_group

    def transform(self, rewarded: Sequence[Rewarded], _seed: int) -> list[Rewarded]:
        """The trees with the channel; then the records with their paths."""
        before, after = dict(self.data.records), self.data.records
        for group in groups([each for each in rewarded if not each.tree.replayed]):
            task = group[0].tree.task.id
            found = [_paths(each.tree, self._count(each.tree)) for each in group]
            good = np.concatenate([count[won] for _, count, won in found])
            if len(good):
                self._add(task, good)
        known = after if self._own_group else before
        return [self._with_channel(each, known.get(each.tree.task.id)) for each in rewarded]

    def observe(self) -> Mapping[str, float]:
        """The number of tasks with a record, and the mean record."""
        known = list(self.data.records.values())
        mean = float(np.mean(known)) if known else 0.0
        return {f"{self._channel}/tasks": float(len(known)), f"{self._channel}/record": mean}

    def _add(self, task: str, good: Floats) -> None:
        """Update the record of a task by the counts of successful paths."""
        before, record = self.data.successes.get(task, 0), self.data.records.get(task)
        self.data.successes[task] = before + len(good)
        if self._history == "mean":
            self.data.records[task] = (before * (record or 0.0) + float(good.sum())) / (before + len(good))
        else:
            self.data.records[task] = min(np.inf if record is None else record, float(good.min()))

    def _with_channel(self, rewarded: Rewarded, record: float | None) -> Rewarded:
        tree = rewarded.tree
        places, count, won = _paths(tree, self._count(tree))
        if self._channel in rewarded.channels:
            raise ValueError(
                f"{self._channel}: got a reward with this channel; need one piece for each channel: remove one"
            )
        paid = np.zeros(tree.nodes)
        paid[places] = self._pay(count, won, record)
        return replace(rewarded, channels={**rewarded.channels, self._channel: paid})


def _paths(tree: Tree, count: Floats | Ints) -> tuple[Ints, Floats, Bools]:
    """[P] each: the node at which each counted path is paid, its count, and whether it succeeds."""
    ends = counted(tree)
    return path_reward_nodes(tree, ends), sum_to_root(tree, count)[ends], solved(tree)[ends]
