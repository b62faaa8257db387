"""Batches whose trees grow ahead of the update that needs them."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from bough.rollout import Rollouts
from bough.rollout.runner import TreeStore
from bough.tree import Task, Tree, cut_tree, join_trees, json_column, read_json_column, tree_record


@dataclass(slots=True, kw_only=True, eq=False)
class GrowingBatch:
    """The first round of a step's trees, and a store of its finished trees.

    Attributes:
        step: The step that trains on it.
        drawn: Number of training tasks drawn before its tasks.
        tasks: Its tasks; empty until they are drawn.
        trees: Its finished trees, by the index of their task.
        disk: Where finished trees are written too, if anywhere.
        rollouts: All of it, once it is complete.
        growing: Its growth.
    """

    step: int
    drawn: int
    tasks: Sequence[Task] = ()
    trees: dict[int, Tree] = field(default_factory=dict[int, Tree])
    disk: TreeStore | None = None
    rollouts: Rollouts | None = None
    growing: "asyncio.Task[Rollouts] | None" = None

    def get(self, place: int, task: Task) -> Tree | None:
        """See `TreeStore.get`."""
        tree = self.trees.get(place)
        if tree is None and self.disk is not None:
            tree = self.disk.get(place, task)
        if tree is not None:
            self.trees[place] = tree
        return tree

    def put(self, place: int, tree: Tree) -> None:
        """See `TreeStore.put`."""
        self.trees[place] = tree
        if self.disk is not None:
            self.disk.put(place, tree)


Grow: TypeAlias = Callable[[GrowingBatch], Coroutine[Any, Any, Rollouts]]
"""Grows the trees of a batch that are not stored in it yet."""


class GrowingBatches:
    """The batches that grow or wait for their update, in the order of their steps; a part of every checkpoint.

    A checkpoint holds complete batches, and the finished trees of the others. A run that resumes grows the rest, with
    the weights of the checkpoint.
    """

    def __init__(self, grow: Grow) -> None:
        """Without a batch."""
        self._grow = grow
        self._batches: dict[int, GrowingBatch] = {}

    def __len__(self) -> int:
        return len(self._batches)

    def start(self, step: int, drawn: int) -> None:
        """Start the batch of a step, unless it is there."""
        batch = self._batches.setdefault(step, GrowingBatch(step=step, drawn=drawn))
        if batch.growing is None and batch.rollouts is None:
            batch.growing = asyncio.create_task(self._grow(batch), name=f"trees of step {step}")

    async def complete(self, step: int) -> Rollouts:
        """The trees of a step, once all are grown; they stay in the checkpoint until `take`."""
        batch = self._batches[step]
        if batch.rollouts is None:
            assert batch.growing is not None
            batch.rollouts = await batch.growing
        return batch.rollouts

    async def take(self, step: int) -> Rollouts:
        """The trees of a step, once all are grown."""
        await self.complete(step)
        return self.pop(step)

    def pop(self, step: int) -> Rollouts:
        """The trees of a complete batch; it waits no longer."""
        rollouts = self._batches.pop(step).rollouts
        assert rollouts is not None
        return rollouts

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of the batches."""
        return tuple(self._batches)

    async def stop(self, *, keep: bool) -> None:
        """Stop growing.

        Args:
            keep: Whether the finished trees of incomplete batches stay in the checkpoint. Their tasks stay, as hooks
                have counted them.
        """
        for batch in self._batches.values():
            growing, batch.growing = batch.growing, None
            if growing is None or batch.rollouts is not None:
                continue
            growing.cancel()
            await asyncio.wait([growing])
            if not growing.cancelled() and growing.exception() is None:
                batch.rollouts = growing.result()
            elif not keep:
                batch.trees.clear()

    def state(self) -> Mapping[str, Tensor]:
        """The trees, column by column, and all else as JSON; empty without a batch."""
        if not self._batches:
            return {}
        for batch in self._batches.values():
            with suppress(asyncio.InvalidStateError, asyncio.CancelledError):
                # An error of the growth is raised where its result is awaited.
                if batch.growing is not None and batch.growing.exception() is None:
                    batch.rollouts = batch.growing.result()
        trees = [tree for batch in self._batches.values() for tree in _trees(batch).values()]
        words = {"batches": [_record(batch) for batch in self._batches.values()], "trees": [*map(tree_record, trees)]}
        columns = join_trees(trees) | {"words": json_column(words)}
        return {name: torch.as_tensor(np.array(column)) for name, column in columns.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`, bit for bit; the batches wait for `start`."""
        self._batches = {}
        if not state:
            return
        columns = {name: column.numpy() for name, column in state.items()}
        words = read_json_column(columns.pop("words"))
        trees = iter([cut_tree(columns, at, record) for at, record in enumerate(words["trees"])])
        for record in words["batches"]:
            found = {place: next(trees) for place in record["places"]}
            whole = record["unstarted"] is not None
            self._batches[record["step"]] = GrowingBatch(
                step=record["step"],
                drawn=record["drawn"],
                tasks=tuple(map(Task.read, record["tasks"])),
                trees={} if whole else found,
                rollouts=Rollouts(trees=tuple(found.values()), unstarted=record["unstarted"]) if whole else None,
            )


def _trees(batch: GrowingBatch) -> Mapping[int, Tree]:
    return batch.trees if batch.rollouts is None else dict(enumerate(batch.rollouts.trees))


def _record(batch: GrowingBatch) -> dict[str, object]:
    return {
        "step": batch.step,
        "drawn": batch.drawn,
        "tasks": [task.record() for task in batch.tasks],
        "places": [*_trees(batch)],
        "unstarted": None if batch.rollouts is None else dict(batch.rollouts.unstarted),
    }
