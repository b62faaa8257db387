"""A host for fast environments: they run in this process, one call at a time."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bough.env.checked import ValidatedEnv
from bough.env.env import Branching, Closing, Env, Split, State, Step
from bough.tree import AgentAction, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessHost:
    """Runs an environment in this process. A call that hangs blocks the process; use `Workers` against hanging calls.

    Attributes:
        env: The environment.
    """

    env: Env
    _took_s: list[float] = field(default_factory=lambda: [0.0], init=False, repr=False, compare=False)

    @property
    def busy_s(self) -> float:
        """Busy seconds of the environment."""
        return self._took_s[0]

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
        with self._working():
            return ValidatedEnv(env=self.env).tasks(split, count, seed)

    async def start(self, task: Task) -> State:
        """Calls `Env.start`.

        Raises:
            EnvFault: when the environment raises anything but ValueError, or returns no `State`.
            ValueError: the environment's own, about a bad task.
        """
        with self._working():
            return ValidatedEnv(env=self.env).start(task)

    async def step(self, state: State, action: AgentAction) -> Step:
        """Calls `Env.step`.

        Raises:
            EnvFault: when the environment raises, or returns no `Step`.
        """
        with self._working():
            return ValidatedEnv(env=self.env).step(state, action)

    async def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Calls `Oracle.plan`; returns None too when the environment is no oracle.

        Raises:
            EnvFault: when the environment raises, or returns neither strings nor None.
        """
        with self._working():
            return ValidatedEnv(env=self.env).plan(state)

    async def close(self) -> None:
        """Closes the environment, if it holds processes or connections (`Closing`)."""
        if isinstance(self.env, Closing):
            self.env.close()

    @contextmanager
    def _working(self) -> Generator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._took_s[0] += time.perf_counter() - begin
