"""The opening of a run: tasks, a first state, and texts for a tokenizer, from the environment's host."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bough.context import told
from bough.env import Branching, EnvFault, EnvHost, Split, State, Step
from bough.explore import Waits, derive
from bough.store import read_tasks
from bough.train.check import check_state
from bough.train.config import ConfigError
from bough.train.run import Run, Tasks
from bough.train.texts import collect
from bough.tree import Task

Result = TypeVar("Result")

TEXT_TASKS = 256
"""How many training tasks show the environment's language to a tokenizer."""

RETRIES = 2
"""How often an episode of the opening that failed is played again, as with the trees of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedHost:
    """A host whose calls stand in the register of pending awaits, with a deadline.

    Attributes:
        host: Makes the calls.
        waits: The run's register.
        deadline_s: Most seconds for one call. `Workers` have their own, shorter one.
        faults: What failed so far, oldest first.
    """

    host: EnvHost
    waits: Waits
    deadline_s: float
    faults: list[str] = field(default_factory=list[str])

    @property
    def branching(self) -> Branching:
        """The environment's."""
        return self.host.branching

    async def tasks(self, split: Split, count: int, seed: int) -> tuple[Task, ...]:
        """`Host.tasks`."""
        return await self._until(self.host.tasks(split, count, seed), "tasks")

    async def start(self, task: Task) -> State:
        """`Host.start`."""
        return await self._until(self.host.start(task), "start")

    async def step(self, state: State, action: str) -> Step:
        """`Host.step`."""
        return await self._until(self.host.step(state, action), "step")

    async def plan(self, state: State) -> tuple[str, ...] | None:
        """`Host.plan`."""
        return await self._until(self.host.plan(state), "plan")

    async def close(self) -> None:
        """`Host.close`."""
        await self.host.close()

    async def retried(self, play: Callable[[], Awaitable[Result]]) -> Result:
        """What `play` returns, at most `RETRIES` times again after a fault.

        Raises:
            EnvFault: the last fault.
        """
        for left in range(RETRIES, -1, -1):
            try:
                return await play()
            except EnvFault as fault:
                self.faults.append(str(fault))
                if not left:
                    raise
        raise AssertionError("unreachable")

    async def _until(self, call: Awaitable[Result], name: str) -> Result:
        thing = f"environment {name}"
        return await self.waits.until(call, owner="start of the run", thing=thing, deadline_s=self.deadline_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a run needs from its environment before there is a policy.

    Attributes:
        train_tasks: Tasks to train on.
        heldout_tasks: Tasks to evaluate on.
        first: The first state of the first training task that starts.
        texts: The environment's language.
        left_out: How many tasks failed for good, and show no texts.
        faults: How many episodes and calls failed; those that were played again with success, too.
        last_fault: The newest of them; "" when there was none.
    """

    train_tasks: list[Task]
    heldout_tasks: list[Task]
    first: State
    texts: list[str]
    left_out: int
    faults: int
    last_fault: str

    @property
    def line(self) -> str:
        """What failed, for people; "" when nothing did."""
        if not self.faults:
            return ""
        left = f"; {self.left_out} tasks failed for good and show no texts to the tokenizer" if self.left_out else ""
        return f"{self.faults} faults of the environment before the first step{left}. The last fault: {self.last_fault}"


async def open_run(run: Run, host: TimedHost) -> Opening:
    """Draw the tasks, start one, and collect texts.

    A fault is retried like that of an episode; a task that fails for good is left out of the texts.

    Raises:
        EnvFault: when no tasks can be drawn, or none of a batch of tasks can be played; names the last fault.
        ConfigError: when the first state is not what the run's pieces need.
        ValueError: when there are too few tasks.
    """
    train_tasks = await draw_tasks(run, run.tasks, host)
    heldout_tasks = await draw_tasks(run, run.heldout.tasks, host)
    first = await _first_state(train_tasks[: run.batch_tasks], host)
    check_state(run, first)
    texts, left_out = await _texts(run, train_tasks[:TEXT_TASKS], host)
    texts += [run.experts.revise.thought] if run.experts.revise else []
    return Opening(
        train_tasks=train_tasks,
        heldout_tasks=heldout_tasks,
        first=first,
        texts=texts,
        left_out=left_out,
        faults=len(host.faults),
        last_fault=host.faults[-1] if host.faults else "",
    )


async def draw_tasks(run: Run, tasks: Tasks, host: TimedHost) -> list[Task]:
    """The tasks that a run names.

    Raises:
        EnvFault: when the environment cannot draw them.
        ConfigError: when a file can't be read, has a broken line, or too few tasks; names the field.
    """
    if tasks.file is None:
        seed = derive(run.seed, "tasks", tasks.split)
        return list(await host.retried(lambda: host.tasks(tasks.split, tasks.count, seed)))
    field = "heldout.tasks" if tasks is run.heldout.tasks else "tasks"
    try:
        found = read_tasks(Path(tasks.file))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"{field}.file: cannot read {tasks.file}: {reason}; need a file of tasks") from error
    except ValueError as error:
        raise ConfigError(f"{field}.file: {error}") from error
    if len(found) < tasks.count:
        raise ConfigError(
            f"{field}.file: {tasks.file}: got {len(found)} tasks; need {tasks.count} (the run's {field}.count)"
        )
    return found[: tasks.count]


async def _first_state(tasks: Sequence[Task], host: TimedHost) -> State:
    for task in tasks:
        try:
            return await host.retried(lambda task=task: host.start(task))
        except EnvFault:
            continue
    raise _nothing(len(tasks), host)


async def _texts(run: Run, tasks: Sequence[Task], host: TimedHost) -> tuple[list[str], int]:
    """The texts of all tasks in their order, and how many tasks failed for good."""
    places = asyncio.Semaphore(max(1, run.workers))

    async def one(task: Task) -> list[str] | None:
        async with places:
            try:
                return await host.retried(lambda: collect(host, task, run.parser, turns=run.limits.turns))
            except EnvFault:
                return None

    found: list[list[str]] = []
    for begin in range(0, len(tasks), run.batch_tasks):
        batch = tasks[begin : begin + run.batch_tasks]
        found += [texts for texts in await asyncio.gather(*map(one, batch)) if texts is not None]
        if not found:
            raise _nothing(len(batch), host)
    return [told(run.env.instructions, run.parser), *(text for texts in found for text in texts)], len(tasks) - len(
        found
    )


def _nothing(count: int, host: TimedHost) -> EnvFault:
    return EnvFault(
        f"none of {count} tasks could be played, each tried {1 + RETRIES} times; need one to begin with. "
        f"The last fault: {host.faults[-1]}"
    )
