"""A host: runs the steps of an environment for many episodes."""

from typing import Protocol, runtime_checkable

from bough.env.env import Branching, Split, State, Step
from bough.tree import AgentAction, Task


@runtime_checkable
class Host(Protocol):
    """Runs an environment for many branches at once: in this process (`InProcessHost`) or in others (`Workers`)."""

    @property
    def branching(self) -> Branching:
        """How the environment steps the same state twice."""
        ...

    async def start(self, task: Task) -> State:
        """Calls `Env.start`; raises `EnvFault` when the environment raises, hangs, or returns no `State`."""
        ...

    async def step(self, state: State, action: AgentAction) -> Step:
        """Calls `Env.step`, with the same faults as `start`."""
        ...

    async def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Calls `Oracle.plan`; returns None too when the environment is no `Oracle`. Faults as in `start`."""
        ...

    async def close(self) -> None:
        """Releases processes and files. Safe to call twice."""
        ...


@runtime_checkable
class EnvHost(Host, Protocol):
    """A host that also returns tasks."""

    @property
    def replaced(self) -> int:
        """Number of worker processes that hung or died and were replaced; 0 without workers."""
        ...

    async def tasks(self, split: Split, count: int, seed: int) -> tuple[Task, ...]:
        """Calls `Env.tasks`; raises `EnvFault` when the environment raises or hangs, ValueError for too few tasks."""
        ...
