"""Before the policy exists: draws tasks, a first state, and texts for the tokenizer from the environment."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bough.config.config import ConfigError
from bough.context import full_instructions
from bough.env import Branching, EnvFault, EnvHost, Split, State, Step, UserCodeError, seats_of
from bough.roles.oracle_actions import oracle_actions
from bough.rollout import Deadlines
from bough.store import Conversation, read_conversations, read_tasks
from bough.train.resolve import check_state
from bough.train.run import Run, Tasks
from bough.train.texts import tokenizer_corpus
from bough.tree import AgentAction, Task, derive
from bough.varying import constant

Result = TypeVar("Result")

TEXT_TASKS = 256
"""The number of training tasks whose texts train the tokenizer."""

RETRIES = 2
"""Retries of a failed episode before the first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedHost:
    """A host whose calls are registered as pending awaits, with a deadline.

    Attributes:
        host: Makes the calls.
        deadlines: The run's register.
        deadline_s: Most seconds for one call. `Workers` have their own, shorter one.
        faults: The texts of all faults so far, oldest first.
    """

    host: EnvHost
    deadlines: Deadlines
    deadline_s: float
    faults: list[str] = field(default_factory=list[str])

    @property
    def branching(self) -> Branching:
        """The environment's."""
        return self.host.branching

    async def tasks(self, split: Split, count: int, seed: int) -> tuple[Task, ...]:
        """`EnvHost.tasks`."""
        return await self._until(self.host.tasks(split, count, seed), "tasks")

    async def start(self, task: Task) -> State:
        """`Host.start`."""
        return await self._until(self.host.start(task), "start")

    async def step(self, state: State, action: AgentAction) -> Step:
        """`Host.step`."""
        return await self._until(self.host.step(state, action), "step")

    async def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """`Host.plan`."""
        return await self._until(self.host.plan(state), "plan")

    async def close(self) -> None:
        """`Host.close`."""
        await self.host.close()

    async def retried(self, play: Callable[[], Awaitable[Result]]) -> Result:
        """Await `play`, with up to `RETRIES` retries after faults.

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
        return await self.deadlines.until(call, owner="start of the run", thing=thing, deadline_s=self.deadline_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstDraw:
    """The data that a run draws from its environment before the policy is built.

    Attributes:
        train_tasks: Tasks to train on.
        heldout_tasks: Tasks to evaluate on.
        first: The first state of the first training task that starts.
        texts: Texts of short episodes, for the tokenizer.
        left_out: Number of tasks without texts, because all retries failed.
        faults: Number of failed episodes and calls, including those retried with success.
        last_fault: The text of the newest fault; "" without any.
        conversations: The conversations of files of demonstrations, by the field with the file.
    """

    train_tasks: list[Task]
    heldout_tasks: list[Task]
    first: State
    texts: list[str]
    left_out: int
    faults: int
    last_fault: str
    conversations: Mapping[str, list[Conversation]]

    @property
    def line(self) -> str:
        """A line about the faults; "" without any."""
        if not self.faults:
            return ""
        left = f"; {self.left_out} tasks failed in all retries, and add no texts" if self.left_out else ""
        return f"{self.faults} faults of the environment before the first step{left}. The last fault: {self.last_fault}"


async def open_run(run: Run, host: TimedHost, *, heldout: bool = True) -> FirstDraw:
    """Draw the tasks, start one, and collect texts.

    A fault is retried; a task that fails in all retries adds no texts.

    Args:
        run: The run.
        host: Of its environment.
        heldout: Whether to draw the held-out tasks.

    Raises:
        EnvFault: when no tasks can be drawn, or no task of the first batch can be played; has the last fault.
        ConfigError: when the first state lacks something that the run's pieces need.
        ValueError: when there are too few tasks.
    """
    conversations = _conversations(run)
    train_tasks = await draw_tasks(run, run.world.tasks, host, "tasks", seed=run.seed)
    heldout_tasks = await draw_heldout(run, host) if heldout else []
    first = await _first_state(train_tasks[: run.world.schedule.batch_tasks], host)
    check_state(run, first)
    texts, left_out = await _texts(run, train_tasks[:TEXT_TASKS], host)
    texts += [each.content for rows in conversations.values() for row in rows for each in row.messages]
    texts += run.method.demonstrations.revise.texts if run.method.demonstrations.revise else ()
    return FirstDraw(
        train_tasks=train_tasks,
        heldout_tasks=heldout_tasks,
        first=first,
        texts=texts,
        left_out=left_out,
        faults=len(host.faults),
        last_fault=host.faults[-1] if host.faults else "",
        conversations=conversations,
    )


def _conversations(run: Run) -> dict[str, list[Conversation]]:
    """The conversations of files of demonstrations, without failed ones.

    Raises:
        ConfigError: when a file cannot be read, or has a broken line; names the field.
    """
    imitated = {f"{name}.file": part.file for name, part in run.world.warmup.parts().items()}
    files = {**imitated, "demonstrations.file": run.method.demonstrations.file}
    found: dict[str, list[Conversation]] = {}
    for name, file in files.items():
        if file is None:
            continue
        if seats_of(run.world.env):
            raise ConfigError(f"{name}: got a file and an environment with seats; need an environment for one agent")
        try:
            rows = read_conversations(Path(file))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{name}: cannot read {file}: {error}") from error
        found[name] = [row for row in rows if row.success is not False]
        if not found[name]:
            raise ConfigError(f"{name}: got {len(rows)} conversations in {file}, all with success=false; need others")
    return found


def begun_lines(run: Run, first_draw: FirstDraw) -> list[str]:
    """A line about each source whose tasks the oracle begins: their number."""
    world = run.world
    drawn = (
        ("tasks", world.tasks, first_draw.train_tasks),
        ("evaluation.tasks", world.evaluation.tasks, first_draw.heldout_tasks),
    )
    return [
        f"the oracle begins {sum(bool(task.start) for task in tasks)} of {len(tasks)} tasks "
        f"({field}.actions_left={source.actions_left})"
        for field, source, tasks in drawn
        if source.actions_left is not None
    ]


def first_tasks(tasks: Sequence[Task], count: int, field: str) -> Sequence[Task]:
    """The first `count` training tasks.

    Raises:
        ValueError: when there are fewer; names the setting `field`.
    """
    if count > len(tasks):
        raise ValueError(f"{field}: got {count}; need at most tasks.count, which is {len(tasks)}")
    return tasks[:count]


async def draw_heldout(run: Run, host: TimedHost) -> list[Task]:
    """Draw the held-out tasks of a run, with the seed of its evaluation; see `draw_tasks`."""
    evaluation = run.world.evaluation
    return await draw_tasks(run, evaluation.tasks, host, "evaluation.tasks", seed=evaluation.seed)


async def draw_tasks(run: Run, tasks: Tasks, host: TimedHost, field: str, *, seed: int) -> list[Task]:
    """Draw the tasks of a run, from the environment or from a file, with the oracle's first turns where it begins them.

    Args:
        run: The run.
        tasks: Their source.
        host: Plays the environment.
        field: The setting with the source, for errors.
        seed: The seed of the draw from the environment.

    Raises:
        EnvFault: when the environment cannot draw or begin them.
        ConfigError: when the environment has too few, or a file cannot be read, has a broken line or too few.
    """
    found = await _drawn(tasks, host, field, seed)
    if (left := tasks.actions_left) is None:
        return found
    places = asyncio.Semaphore(max(1, run.world.execution.workers))

    async def begun(task: Task) -> Task:
        async with places:
            return task.after((await host.retried(lambda: oracle_actions(host, task)))[:-left])

    return list(await asyncio.gather(*map(begun, found)))


async def _drawn(tasks: Tasks, host: TimedHost, field: str, seed: int) -> list[Task]:
    if tasks.file is None:
        draw_seed = derive(seed, "tasks", tasks.split)
        try:
            return list(await host.retried(lambda: host.tasks(tasks.split, tasks.count, draw_seed)))
        except UserCodeError:
            raise
        except ValueError as error:
            raise ConfigError(f"{field}: {error}") from error
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
    """The texts of all tasks in their order, and the number of tasks that failed in all retries."""
    places = asyncio.Semaphore(max(1, run.world.execution.workers))
    turns = constant(run.world.at(1.0).limits.turns)

    async def one(task: Task) -> list[str] | None:
        async with places:
            try:
                return await host.retried(lambda: tokenizer_corpus(host, task, run.world.parser, turns=turns))
            except EnvFault:
                return None

    instructions = (run.world.env.instructions, *seats_of(run.world.env).values())
    found: list[list[str]] = []
    for begin in range(0, len(tasks), run.world.schedule.batch_tasks):
        batch = tasks[begin : begin + run.world.schedule.batch_tasks]
        found += [texts for texts in await asyncio.gather(*map(one, batch)) if texts is not None]
        if not found:
            raise _nothing(len(batch), host)
    return [
        *(full_instructions(each, run.world.parser) for each in instructions),
        *(text for texts in found for text in texts),
    ], len(tasks) - len(found)


def _nothing(count: int, host: TimedHost) -> EnvFault:
    return EnvFault(
        f"none of {count} tasks could be played, each tried {1 + RETRIES} times; need one to begin with. "
        f"The last fault: {host.faults[-1]}"
    )
