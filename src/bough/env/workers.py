"""A host for environments that are slow or may hang: they run in processes of their own, with deadlines."""

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

from bough.env import Branching, Env, Split, State, Step
from bough.env.serve import Packed, Request
from bough.env.worker import Worker
from bough.tree import Task

LARGE_ENV_BYTES = 50 * 2**20
LARGE_STATE_BYTES = 2**20
"""Pickled sizes from which `Workers.notify` is called."""


def to_stderr(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workers:
    """Runs an environment in `count` processes.

    A process that hangs or dies is killed and replaced at once; the call it failed on gets an `EnvFault`, all others
    go on as if nothing had happened, because states are values. A new episode goes to the least busy process, a step to
    the process that may hold its state alive (`Replay`). Processes are started by the first calls, never load torch
    unless the environment does, and end with this process, however it ends.

    The states it returns can be stepped here only, or in other `Workers` of the same environment.

    Attributes:
        env: What to run; it and its states can be pickled.
        count: How many processes.
        deadline_s: Most seconds for one call, counted from when its process is free for it. A call behind n others
            thus has its answer or its fault within (n + 1) deadlines, plus the time to start fresh processes.
        startup_s: Most seconds for a fresh process to load the environment.
        notify: Called with a line when a process is replaced, and when the environment or a state is large.

    Raises:
        ValueError: when a field is out of its range, or the environment cannot be pickled or branched.
    """

    env: Env
    count: int = 2
    deadline_s: float = 30.0
    startup_s: float = 60.0
    notify: Callable[[str], None] = field(default=to_stderr, repr=False)
    _largest: list[int] = field(default_factory=lambda: [LARGE_STATE_BYTES // 2], init=False, repr=False)
    _crew: list[Worker] = field(default_factory=list[Worker], init=False, repr=False)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Workers.count: got {self.count}; need 1 or more")
        if self.deadline_s <= 0 or self.startup_s <= 0:
            raise ValueError(f"Workers: got {self.deadline_s=} and {self.startup_s=}; need more than 0 seconds")
        name = type(self.env).__name__
        if self.env.branching == Branching.NONE:
            raise ValueError(
                f"Workers.env: got {name} of branching NONE; need states that travel: Replay(env={name}(...))"
            )
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
        self._crew.extend(
            Worker(name=name, env=blob, deadline_s=self.deadline_s, startup_s=self.startup_s, notify=self.notify)
            for _ in range(self.count)
        )

    @property
    def replaced(self) -> int:
        """How many processes hung or died, and were replaced."""
        return sum(worker.replaced for worker in self._crew)

    @property
    def busy_s(self) -> float:
        """For how long the processes have worked, the mean over them."""
        return sum(worker.busy_s for worker in self._crew) / self.count

    @property
    def branching(self) -> Branching:
        """The environment's."""
        return self.env.branching

    async def tasks(self, split: Split, count: int, seed: int) -> tuple[Task, ...]:
        """`Env.tasks`; faults as in `start`."""
        ask = Request(call="tasks", draw=(split, count, seed))
        return cast("tuple[Task, ...]", await self._crew[self._least_busy()].ask(ask))

    async def start(self, task: Task) -> State:
        """`Env.start`.

        Raises:
            EnvFault: when the environment broke, hung, or returned something else than a State.
            ValueError: the environment's own, about a bad task.
            UserCodeError: the same from the user's code, or when no worker can load the environment.
            RuntimeError: after `close`.
        """
        home = self._least_busy()
        state = await self._crew[home].ask(Request(call="start", task=task))
        return self._housed(cast("State", state), home)

    async def step(self, state: State, action: str) -> Step:
        """`Env.step`; faults as in `start`."""
        home = self._home(state)
        if isinstance(state.value, Packed):
            state.value.home = None  # Stepping uses the live state up: the next step from here is at home anywhere.
        step = cast("Step", await self._crew[home].ask(Request(call="step", state=state, action=action)))
        return replace(step, state=self._housed(step.state, home))

    async def plan(self, state: State) -> tuple[str, ...] | None:
        """`Oracle.plan`; None too when the environment is no oracle. Faults as in `start`."""
        answer = await self._crew[self._home(state)].ask(Request(call="plan", state=state))
        return cast("tuple[str, ...] | None", answer)

    async def close(self) -> None:
        """End the processes. Safe to call twice."""
        for worker in self._crew:
            await worker.close()

    def _least_busy(self) -> int:
        return min(range(self.count), key=lambda index: self._crew[index].calls)

    def _home(self, state: State) -> int:
        home = state.value.home if isinstance(state.value, Packed) else None
        return home if home is not None and home < self.count else self._least_busy()

    def _housed(self, state: State, home: int) -> State:
        if not isinstance(state.value, Packed):
            return state
        self._weigh(len(state.value.blob))
        if self.env.branching == Branching.REPLAY:
            state.value.home = home
        return state

    def _weigh(self, size: int) -> None:
        """Report a large state, and again when one is twice as large."""
        if size >= 2 * self._largest[0]:
            self._largest[0] = size
            self.notify(
                f"{type(self.env).__name__}: got a State.value of {mib(size)} when pickled; every step sends one to a "
                "worker and one back, and each open branch keeps one. Keep in the state what changes, and the rest in "
                "the environment"
            )


def mib(size: int) -> str:
    """A number of bytes in MiB."""
    return f"{size / 2**20:,.1f} MiB"
