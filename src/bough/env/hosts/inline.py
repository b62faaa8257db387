"""A host for environments that run in this process."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, TypeVar

from bough.env.checked import ValidatedEnv
from bough.env.env import MAX_CONCURRENT_CALLS, Branching, Closable, Env, Split, State, Step, waits_of
from bough.env.hosts.busy_time import BusyTime
from bough.launch import in_background
from bough.piece import AtLeast, check_bounds
from bough.tree import AgentAction, Task

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessHost:
    """Runs an environment in this process.

    The calls of an environment that waits (`Waits`) run in threads, up to `max_concurrent_calls` at a time, and the
    engine goes on meanwhile. Those of any other run one at a time, and one that hangs blocks the process; use
    `Workers` against hanging calls.

    Attributes:
        env: The environment.
        max_concurrent_calls: Maximum number of calls at a time of an environment that waits.
    """

    env: Env
    max_concurrent_calls: Annotated[int, AtLeast(1)] = MAX_CONCURRENT_CALLS
    _busy: BusyTime = field(default_factory=BusyTime, init=False, repr=False, compare=False)
    _gates: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = field(
        default_factory=dict[asyncio.AbstractEventLoop, asyncio.Semaphore], init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # No piece: it takes an environment with any fields.
        check_bounds(self)

    @property
    def busy_s(self) -> float:
        """Busy seconds of the environment: those in which at least one call runs."""
        return self._busy.seconds

    @property
    def branching(self) -> Branching:
        """The environment's `branching`."""
        return self.env.branching

    @property
    def replaced(self) -> int:
        """0: there are no workers."""
        return 0

    async def tasks(self, split: Split, count: int, seed: int) -> tuple[Task, ...]:
        """Calls `Env.tasks`.

        Raises:
            EnvFault: when the environment raises anything but ValueError.
            ValueError: the environment's own, or when the result is not `count` different tasks.
        """
        return await self._run(partial(ValidatedEnv(env=self.env).tasks, split, count, seed))

    async def start(self, task: Task) -> State:
        """Calls `Env.start`.

        Raises:
            EnvFault: when the environment raises anything but ValueError, or returns no `State`.
            ValueError: the environment's own, about a bad task.
        """
        return await self._run(partial(ValidatedEnv(env=self.env).start, task))

    async def step(self, state: State, action: AgentAction) -> Step:
        """Calls `Env.step`.

        Raises:
            EnvFault: when the environment raises, or returns no `Step`.
        """
        return await self._run(partial(ValidatedEnv(env=self.env).step, state, action))

    async def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Calls `Oracle.plan`; returns None too when the environment is no oracle.

        Raises:
            EnvFault: when the environment raises, or returns neither strings nor None.
        """
        return await self._run(partial(ValidatedEnv(env=self.env).plan, state))

    async def close(self) -> None:
        """Closes the environment, if it holds processes or connections (`Closable`)."""
        if isinstance(self.env, Closable):
            await self._run(self.env.close)

    async def _run(self, call: Callable[[], Result]) -> Result:
        """The result of a call: in a thread for an environment that waits, else at once."""
        if not waits_of(self.env):
            with self._busy:
                return call()
        async with self._gate():
            with self._busy:
                return await asyncio.wrap_future(in_background(call, "bough-env-call"))

    def _gate(self) -> AbstractAsyncContextManager[None]:
        """Bounds the number of calls; a semaphore belongs to one event loop, and a host may outlive several."""
        loop = asyncio.get_running_loop()
        if loop not in self._gates:
            self._gates.clear()
            self._gates[loop] = asyncio.Semaphore(self.max_concurrent_calls)
        return self._gates[loop]
