"""Environments: the world an agent acts in, as values in and values out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from bough.tree import Outcome, Task
from bough.tree.needs import FORKS, ORACLE, Gives, Need, gives_of

Split: TypeAlias = Literal["train", "dev", "test"]


class Branching(StrEnum):
    """What it costs to step the same state twice."""

    COPY = "copy"
    """Nothing special: the state is a value, or is copied."""
    REPLAY = "replay"
    """The task is started again and the actions are played again; the replayed steps count in the budget."""
    NONE = "none"
    """It cannot be done: only the newest state of an episode can be stepped. Wrap in `Replay`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A situation, as a value that can be kept, stepped again, and sent to another process.

    Attributes:
        observation: What the agent reads.
        key: Equal keys mean the same situation (no step counters in it); "" when unknown.
        value: The environment's own; no one else looks inside.
        admissible: The actions that have a meaning here, where the environment knows them.
    """

    observation: str
    key: str
    value: object
    admissible: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one action led to.

    Attributes:
        state: Where the agent now is.
        reward: The environment's reward for this action. Hosts convert NumPy scalars in `reward`, `valid` and
            `success` to Python's.
        outcome: `OPEN`, or `TERMINATED` or `TRUNCATED` when the episode is over.
        valid: Whether the environment understood the action.
        success: Whether the task is now solved.
        replayed_steps: How many earlier steps had to be played again to get here.
        info: Anything else worth keeping; values that JSON can write.
    """

    state: State
    reward: float = 0.0
    outcome: Outcome = Outcome.OPEN
    valid: bool = True
    success: bool = False
    replayed_steps: int = 0
    info: Mapping[str, object] = field(default_factory=dict[str, object])


@runtime_checkable
class Env(Protocol):
    """An environment: a frozen dataclass whose fields are its settings.

    `start` and `step` depend on their arguments alone: the same task and actions give the same states on every
    machine. They run in a worker process when a run asks for workers, so an `Env` can be pickled.
    """

    @property
    def branching(self) -> Branching:
        """What it costs to step the same state twice."""
        ...

    @property
    def instructions(self) -> str:
        """What the agent is told before the first observation."""
        ...

    def tasks(self, split: Split, count: int, seed: int) -> Sequence[Task]:
        """`count` different tasks of a split. No task of one split occurs in another, whatever the seed.

        Raises:
            ValueError: when the split has fewer than `count` tasks.
        """
        ...

    def start(self, task: Task) -> State:
        """The first state of a task."""
        ...

    def step(self, state: State, action: str) -> Step:
        """Act in a state. An action that makes no sense is answered with `valid=False`, never with an exception."""
        ...


@runtime_checkable
class Oracle(Protocol):
    """An environment that knows how to solve itself."""

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Actions that lead from `state` to success, shortest or expert; None when there are none."""
        ...


def env_gives(env: Env) -> frozenset[Need]:
    """What an environment gives: forks and an oracle, by its methods; an oracle of a wrapper, by what it declares."""
    declared = gives_of(env)
    forks = frozenset[Need](() if env.branching is Branching.NONE else {FORKS})
    oracle = frozenset[Need]({ORACLE} if isinstance(env, Oracle) and not isinstance(env, Gives) else ())
    return declared | forks | oracle


@runtime_checkable
class HashedData(Protocol):
    """An environment made of data files."""

    @property
    def data_hash(self) -> str:
        """SHA-256 of the files, for the run's manifest."""
        ...


class EnvFault(Exception):
    """An environment broke, hung or answered with the wrong type. The path becomes `FAILED`; the episode is retried."""


class UserCodeError(ValueError):
    """A permanent error of the user's environment; never retried. The message has its class, text, file and line."""


@runtime_checkable
class Host(Protocol):
    """Runs an environment for many branches at once: in this process (`InProcessHost`) or in others (`Workers`)."""

    @property
    def branching(self) -> Branching:
        """What it costs to step the same state twice."""
        ...

    async def start(self, task: Task) -> State:
        """`Env.start`; raises `EnvFault` when the environment broke, hung, or returned something else than a State."""
        ...

    async def step(self, state: State, action: str) -> Step:
        """`Env.step`, with the same faults as `start`."""
        ...

    async def plan(self, state: State) -> tuple[str, ...] | None:
        """`Oracle.plan`; None too when the environment is no `Oracle`. Faults as in `start`."""
        ...

    async def close(self) -> None:
        """Let go of processes and files. Safe to call twice."""
        ...


@runtime_checkable
class EnvHost(Host, Protocol):
    """A host that also draws tasks."""

    @property
    def replaced(self) -> int:
        """The number of worker processes that hung or died and were replaced; 0 without workers."""
        ...

    async def tasks(self, split: Split, count: int, seed: int) -> tuple[Task, ...]:
        """`Env.tasks`; raises `EnvFault` when the environment breaks or hangs, ValueError when it has too few."""
        ...


# Last, because every piece imports the protocol from above.
from bough.env.frozenlake import FrozenLake  # noqa: E402
from bough.env.inline import InProcessHost  # noqa: E402
from bough.env.joint import ParallelCalls  # noqa: E402
from bough.env.replay import Replay  # noqa: E402
from bough.env.shop import Shop  # noqa: E402
from bough.env.sokoban import Sokoban  # noqa: E402
from bough.env.textworld import TextWorld  # noqa: E402
from bough.env.workers import Workers  # noqa: E402

__all__ = [
    "Branching",
    "Env",
    "EnvFault",
    "EnvHost",
    "FrozenLake",
    "Host",
    "InProcessHost",
    "ParallelCalls",
    "Oracle",
    "Replay",
    "Shop",
    "Sokoban",
    "Split",
    "State",
    "Step",
    "TextWorld",
    "UserCodeError",
    "Workers",
]
