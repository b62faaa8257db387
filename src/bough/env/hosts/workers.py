"""A host that runs environments in worker processes with deadlines."""

import pickle
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, cast

from bough.env.env import MAX_CONCURRENT_CALLS, Branching, Env, Split, State, Step, waits_of
from bough.env.hosts.serve import Packed, Request
from bough.env.hosts.worker import Worker
from bough.launch import Launcher, Placement, ThisMachine
from bough.piece import Above, AtLeast, check_bounds
from bough.tree import AgentAction, Task
from bough.units import MIB
from bough.visible import visible

LARGE_ENV_BYTES = 50 * MIB
LARGE_STATE_BYTES = MIB
"""`Workers.notify` is called from this pickled size on."""


def to_stderr(text: str) -> None:
    """Prints a line on standard error."""
    print(visible(text), file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workers:
    """Runs an environment in `count` processes.

    A process that hangs or dies is killed and replaced at once. Its call raises an `EnvFault`; all other calls
    continue, because states are values. Each process runs one call at a time, or up to `max_concurrent_calls` of an
    environment that waits (`Waits`), in threads. States of branching `NONE` stay in the process that started their
    episode, and are lost with it. A new episode goes to the least busy process, a step to the process that may hold its
    live state (`Replay`). The first calls start the processes. They load torch only if the environment does,
    and end with this process, however it ends.

    The returned states can be stepped only here, or in other `Workers` of the same environment.

    Attributes:
        env: The environment; it and its states can be pickled.
        count: Number of processes.
        deadline_s: Maximum seconds for one call, counted from when its process is free. A call behind n others
            returns or raises within (n + 1) deadlines, plus the time to start new processes.
        startup_s: Maximum seconds for a new process to load the environment.
        max_concurrent_calls: Maximum number of calls at a time in each process, of an environment that waits.
        placement: Where the processes start.
        notify: Called with a line when a process is replaced, and when the environment or a state is large.

    Raises:
        ValueError: when a field is out of its range, or the environment cannot be pickled.
        LaunchError: when the cluster has no free resources, or more processes are wanted than fit this machine.
    """

    env: Env
    count: Annotated[int, AtLeast(1)] = 2
    deadline_s: Annotated[float, Above(0, "more than 0 seconds")] = 30.0
    startup_s: Annotated[float, Above(0, "more than 0 seconds")] = 60.0
    max_concurrent_calls: Annotated[int, AtLeast(1)] = MAX_CONCURRENT_CALLS
    placement: Placement = ThisMachine()
    notify: Callable[[str], None] = field(default=to_stderr, repr=False)
    _largest: list[int] = field(default_factory=lambda: [LARGE_STATE_BYTES // 2], init=False, repr=False)
    _workers: list[Worker] = field(default_factory=list[Worker], init=False, repr=False)
    _launchers: list[Launcher] = field(default_factory=list[Launcher], init=False, repr=False)

    def __post_init__(self) -> None:
        check_bounds(self)
        name = type(self.env).__name__
        try:
            blob = pickle.dumps(self.env)
        except Exception as broken:
            raise ValueError(
                f"Workers.env: got {name}, which cannot be pickled ({broken}); need a class at the top of a module, "
                "with fields that can be pickled"
            ) from broken
        if len(blob) >= LARGE_ENV_BYTES:
            self.notify(
                f"Workers.env: {name} has {mib(len(blob))} when pickled; each of {self.count} workers gets a copy, "
                f"{mib(self.count * len(blob))} in all, again when it is replaced. Load the data inside the "
                "environment, from a file that a field names"
            )
        launcher = self.placement.reserve("environment workers", self.count)
        self._launchers.append(launcher)
        self._workers.extend(
            Worker(
                name=name,
                env=blob,
                deadline_s=self.deadline_s,
                startup_s=self.startup_s,
                launcher=launcher,
                index=index,
                notify=self.notify,
                max_concurrent_calls=self.max_concurrent_calls if waits_of(self.env) else 1,
            )
            for index in range(self.count)
        )

    @property
    def replaced(self) -> int:
        """Number of processes that hung or died and were replaced."""
        return sum(worker.replaced for worker in self._workers)

    @property
    def busy_s(self) -> float:
        """Busy seconds, the mean over the processes."""
        return sum(worker.busy_s for worker in self._workers) / self.count

    @property
    def branching(self) -> Branching:
        """The environment's `branching`."""
        return self.env.branching

    async def tasks(self, split: Split, count: int, seed: int) -> tuple[Task, ...]:
        """Calls `Env.tasks`; faults as in `start`."""
        request = Request(call="tasks", draw=(split, count, seed))
        return cast("tuple[Task, ...]", await self._workers[self._least_busy()].call(request))

    async def start(self, task: Task) -> State:
        """Calls `Env.start`.

        Raises:
            EnvFault: when the environment raises, hangs, or returns no `State`.
            ValueError: the environment's own, about a bad task.
            UserCodeError: a ValueError in the user's code, or no worker can load the environment.
            RuntimeError: after `close`.
        """
        home = self._least_busy()
        state = await self._workers[home].call(Request(call="start", task=task))
        return self._with_home(cast("State", state), home)

    async def step(self, state: State, action: AgentAction) -> Step:
        """Calls `Env.step`; faults as in `start`."""
        home = self._home(state)
        if isinstance(state.value, Packed) and not state.value.kept:
            state.value.home = None  # A step consumes the live state: any process can run the next step from here.
        step = cast("Step", await self._workers[home].call(Request(call="step", state=state, action=action)))
        return replace(step, state=self._with_home(step.state, home))

    async def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Calls `Oracle.plan`; returns None too when the environment is no oracle. Faults as in `start`."""
        answer = await self._workers[self._home(state)].call(Request(call="plan", state=state))
        return cast("tuple[AgentAction, ...] | None", answer)

    async def close(self) -> None:
        """Ends the processes. Safe to call twice."""
        for worker in self._workers:
            await worker.close()
        for launcher in self._launchers:
            launcher.close()

    def _least_busy(self) -> int:
        return min(range(self.count), key=lambda index: self._workers[index].calls)

    def _home(self, state: State) -> int:
        home = state.value.home if isinstance(state.value, Packed) else None
        return home if home is not None and home < self.count else self._least_busy()

    def _with_home(self, state: State, home: int) -> State:
        if not isinstance(state.value, Packed):
            return state
        self._report_large(len(state.value.blob))
        if self.env.branching is not Branching.COPY:
            state.value.home = home
        if state.value.kept:
            # The process drops the state together with the last copy here.
            weakref.finalize(state.value, self._workers[home].ended.append, state.value.kept).atexit = False
        return state

    def _report_large(self, size: int) -> None:
        """Reports a large state, and again when a state is twice as large."""
        if size >= 2 * self._largest[0]:
            self._largest[0] = size
            self.notify(
                f"{type(self.env).__name__}: got a State.value of {mib(size)} when pickled; every step sends one to a "
                "worker and one back, and each open branch keeps one. Keep in the state what changes, and the rest in "
                "the environment"
            )


def mib(size: int) -> str:
    """Formats a number of bytes in MiB."""
    return f"{size / MIB:,.1f} MiB"
