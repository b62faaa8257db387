"""The rollouts of many tasks at once: from tasks to trees."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, cast, runtime_checkable

from bough.env import EnvFault, Host
from bough.rollout.agent import Agent, Limits
from bough.rollout.builder import TreeBuilder
from bough.rollout.deadlines import Deadlines
from bough.rollout.rollout import Rollout
from bough.rollout.seats import SeatAgent
from bough.tree import Task, Tree, counted, fault_in
from bough.tree.seeds import derive


@runtime_checkable
class Explorer(Protocol):
    """Grows one tree: a frozen dataclass whose fields are its settings."""

    async def __call__(self, rollout: Rollout) -> None:
        """Call `rollout.root()`, and advance from its cursors until the tree is done."""
        ...


@runtime_checkable
class CountsPaths(Protocol):
    """An explorer that grows a fixed number of paths."""

    @property
    def paths(self) -> int | None:
        """The number of paths of a tree; None when its settings leave it open."""
        ...


def paths_of(explorer: Explorer) -> int | None:
    """The number of paths of a tree; None for an explorer that is not `CountsPaths`."""
    return explorer.paths if isinstance(explorer, CountsPaths) else None


@runtime_checkable
class Evaluates(Protocol):
    """An explorer that plays held-out tasks itself, in place of `Chains`."""

    def single(self) -> Explorer:
        """The explorer with one episode a task."""
        ...


@runtime_checkable
class TreeStore(Protocol):
    """Stores the trees of a list of tasks as they finish."""

    def get(self, place: int, task: Task) -> Tree | None:
        """The tree of the task at an index of the list, if it is stored."""
        ...

    def put(self, place: int, tree: Tree) -> None:
        """Store a tree."""
        ...


AfterTask: TypeAlias = Callable[[Sequence[Tree]], Awaitable[Sequence[Tree]]]
"""A stage for all trees of one task; it returns them in their order."""


class WatchedTree(Protocol):
    """What watches one tree."""

    def grown(self, tree: Tree) -> None:
        """Called with the tree, when it has started."""
        ...


TreeWatcher: TypeAlias = Callable[[Task], AbstractContextManager[WatchedTree]]
"""Watches the growth of a tree, from before its start to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollouts:
    """The trees of a list of tasks.

    Attributes:
        trees: In the order of the tasks; tasks that never started are missing.
        unstarted: Fault by task id.
    """

    trees: tuple[Tree, ...]
    unstarted: Mapping[str, str]

    @property
    def failures(self) -> dict[str, str]:
        """The cause by id of each failed task: it did not start, or every path is `FAILED`."""
        return {**self.unstarted, **{tree.task.id: _fault(tree) for tree in self.trees if not len(counted(tree))}}


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRunner:
    """Grows the trees of a list of tasks; holds the settings that all of them share.

    Attributes:
        agent: The policy's side.
        host: Runs the environment.
        instructions: The environment's instructions, at the start of the prompt.
        limits: Budgets of a path and of a tree.
        deadlines: The run's register of pending awaits.
        seats: The agents of the environment's seats, by name; empty for one agent.
        seat: The seat for whose rewards and success explorers search; "" for one agent.
        max_concurrent: Maximum number of trees that grow at a time.
        start_retries: How often a task whose environment did not start is retried.
        watcher: Watches each tree; None for none.
    """

    agent: Agent
    host: Host
    instructions: str
    limits: Limits
    deadlines: Deadlines
    seats: Mapping[str, SeatAgent] = field(default_factory=dict[str, SeatAgent])
    seat: str = ""
    max_concurrent: int = 64
    start_retries: int = 2
    watcher: TreeWatcher | None = None

    async def run(
        self,
        explorer: Explorer,
        tasks: Sequence[Task],
        *,
        seed: int,
        store: TreeStore | None = None,
        after: AfterTask | None = None,
        slots: asyncio.Semaphore | None = None,
    ) -> Rollouts:
        """Grow one tree for each task, up to `max_concurrent` at a time.

        The seed of a tree is derived from `seed` and its index in the list, so a task that occurs twice grows two
        trees.

        Args:
            explorer: Grows each tree.
            tasks: The list.
            seed: The seed of the list.
            store: Stores finished trees; a stored tree is not grown again. A tree in which every path failed is not
                stored.
            after: Called with the trees of a task when the last of them is finished, while other trees grow.
            slots: Bounds the number of trees that grow at a time, over several lists; None for a bound of the list's
                own.
        """
        slots = asyncio.Semaphore(self.max_concurrent) if slots is None else slots
        finished = _Finished(tasks, after)

        async def one(place: int, task: Task) -> None:
            kept = None if store is None else store.get(place, task)
            tree: Tree | str
            if kept is not None:
                tree = kept
            else:
                async with slots:
                    tree = await self._watched(explorer, task, derive(seed, place))
                if store is not None and isinstance(tree, Tree) and len(counted(tree)):
                    store.put(place, tree)
            await finished.add(place, tree)

        try:
            async with asyncio.TaskGroup() as growing:
                for place, task in enumerate(tasks):
                    growing.create_task(one(place, task))
        except BaseExceptionGroup as errors:
            error = first_error(errors)
        else:
            results = [finished.results[place] for place in range(len(tasks))]
            faults = {task.id: fault for task, fault in zip(tasks, results, strict=True) if isinstance(fault, str)}
            return Rollouts(trees=tuple(tree for tree in results if isinstance(tree, Tree)), unstarted=faults)
        # Concurrent branches fail for one reason. Raised outside of `except`, it keeps its own cause and context.
        raise error

    def rollout(self, task: Task, seed: int) -> Rollout:
        """The rollout of a task, before its start."""
        return Rollout(
            TreeBuilder(task, tuple(self.seats), self.seat),
            self.agent,
            self.host,
            instructions=self.instructions,
            limits=self.limits,
            seed=seed,
            deadlines=self.deadlines,
            seats=self.seats,
        )

    async def _watched(self, explorer: Explorer, task: Task, seed: int) -> Tree | str:
        """As `_one`, watched."""
        if self.watcher is None:
            return await self._one(explorer, task, seed)
        with self.watcher(task) as watched:
            tree = await self._one(explorer, task, seed)
            if isinstance(tree, Tree):
                watched.grown(tree)
            return tree

    async def _one(self, explorer: Explorer, task: Task, seed: int) -> Tree | str:
        """A tree, or the text of the fault when the task did not start."""
        fault = ""
        for _ in range(self.start_retries + 1):
            rollout = self.rollout(task, seed)
            try:
                await explorer(rollout)
            except EnvFault as error:
                fault = str(error)
                continue
            rollout.finish()
            return rollout.builder.done()
        return fault


class _Finished:
    """The results of tasks by their index in the list; runs a stage on all trees of a task."""

    def __init__(self, tasks: Sequence[Task], after: AfterTask | None) -> None:
        self.results: dict[int, Tree | str] = {}
        self._after = after
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, task in enumerate(tasks):
            self._places[task.id].append(place)
        self._tasks = tasks

    async def add(self, place: int, result: Tree | str) -> None:
        """Store a result; the last one of a task runs the stage."""
        self.results[place] = result
        places = self._places[self._tasks[place].id]
        if self._after is None or not all(each in self.results for each in places):
            return
        grown = {each: tree for each in places if isinstance(tree := self.results[each], Tree)}
        if grown:
            self.results |= dict(zip(grown, await self._after(list(grown.values())), strict=True))


def _fault(tree: Tree) -> str:
    """The text of the first fault in a tree."""
    faults = (fault for info in tree.info if (fault := fault_in(info)) is not None)
    return next(faults, "no fault was recorded")


def first_error(error: BaseException) -> BaseException:
    """The first exception in nested groups that is not a group."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
