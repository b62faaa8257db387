"""An environment: states, steps, and how a state is copied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from bough.needs import CALLS, CALLS_TAKEN, FORKS, ORACLE, SEATS, Gives, Need, gives_of, needs_of
from bough.tree import AgentAction, Observation, Outcome, Task, Tool

Split: TypeAlias = Literal["train", "dev", "test"]


class Branching(StrEnum):
    """How an environment steps the same state twice."""

    COPY = "copy"
    """A state is a value, or can be copied; branching costs no extra steps."""
    REPLAY = "replay"
    """The task is restarted and the actions are replayed; the replayed steps count in the budget."""
    NONE = "none"
    """Only the newest state of an episode can be stepped: paths part at the start, each with an episode of its own.
    Wrap the environment in `Replay` for other trees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """An environment state, as a value that can be stored, stepped again, and sent to another process.

    Attributes:
        observation: What the agent reads: messages, or a text as the short form of one user message.
        key: Equal keys mean the same state (no step counters in it); "" when unknown.
        value: The environment's private data; only the environment reads it.
        admissible: The valid actions in this state, where the environment lists them.
        tools: The tools that the agent can call in this state.
        seat: The seat that acts in this state, one of `seats` of the environment; "" in an environment for one agent.
            The observation is for this seat alone.
    """

    observation: Observation
    key: str
    value: object
    admissible: tuple[str, ...] | None = None
    tools: tuple[Tool, ...] = ()
    seat: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The result of one action.

    Attributes:
        state: The next state.
        reward: The environment's reward for this action. Hosts convert NumPy scalars in `reward`, `valid` and
            `success` to Python's.
        outcome: `OPEN`, or `TERMINATED` or `TRUNCATED` when the episode is over.
        valid: Whether the environment recognised the action.
        success: Whether the task is now solved.
        payoffs: With several seats, the reward of each seat by name, where they differ; a seat that is missing gets 0.
            Without payoffs each seat gets `reward`.
        successes: With several seats, whether each seat has succeeded, by name, where they differ from `success`.
        replayed_steps: Number of earlier steps that were replayed to reach this state.
        info: Further data; values that JSON can write.
    """

    state: State
    reward: float = 0.0
    outcome: Outcome = Outcome.OPEN
    valid: bool = True
    success: bool = False
    payoffs: Mapping[str, float] = field(default_factory=dict[str, float])
    successes: Mapping[str, bool] = field(default_factory=dict[str, bool])
    replayed_steps: int = 0
    info: Mapping[str, object] = field(default_factory=dict[str, object])


@runtime_checkable
class Env(Protocol):
    """An environment: a frozen dataclass whose fields are its settings.

    `start` and `step` are pure functions of their arguments: the same task and actions give the same states on every
    machine. They run in a worker process when a run uses workers, so an `Env` can be pickled.

    An environment that takes calls of tools declares `needs = frozenset({CALLS})` (`bough.needs`); its actions
    are `Action`, those of any other environment are texts.
    """

    @property
    def branching(self) -> Branching:
        """How the environment steps the same state twice."""
        ...

    @property
    def instructions(self) -> str:
        """The rules, part of the system prompt."""
        ...

    def tasks(self, split: Split, count: int, seed: int) -> Sequence[Task]:
        """Returns `count` different tasks of a split. Splits share no task, whatever the seed.

        Raises:
            ValueError: when the split has fewer than `count` tasks.
        """
        ...

    def start(self, task: Task) -> State:
        """Returns the first state of a task."""
        ...

    def step(self, state: State, action: Any) -> Step:
        """Executes an action in a state. An unrecognised action gives `valid=False`, never an exception.

        Args:
            state: The state.
            action: A text; an `Action` for an environment that needs `CALLS`. Its calls are answered by messages of
                role "tool" in the next observation: one for each call, in the order of the calls, with its `call_id`.
        """
        ...


@runtime_checkable
class Oracle(Protocol):
    """An environment with a solver."""

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Returns actions from `state` to success, shortest or by demonstration; None when there are none."""
        ...


@runtime_checkable
class MultiAgentEnv(Protocol):
    """An environment for several agents: `State.seat` names the one that acts.

    Each seat reads only its own observations. Its first prompt begins with its instructions.
    """

    @property
    def seats(self) -> Mapping[str, str]:
        """The instructions of each seat, by name; empty in a wrapper of an environment for one agent."""
        ...


def seats_of(env: Env) -> Mapping[str, str]:
    """The instructions of each seat of an environment; empty for one agent."""
    return env.seats if isinstance(env, MultiAgentEnv) else {}


MAX_CONCURRENT_CALLS = 64
"""Default of the maximum number of calls at a time of an environment that waits."""


@runtime_checkable
class Waits(Protocol):
    """An environment whose calls wait for something outside of the process, such as a server or a program.

    It declares `waits: ClassVar[bool] = True`. Calls then run in threads, several at a time, each in another episode;
    what they share is to be guarded by a lock, and the working folder is not to be changed.
    """

    @property
    def waits(self) -> bool:
        """Whether several calls may run at a time."""
        ...


def waits_of(env: Env) -> bool:
    """Whether several calls of an environment may run at a time."""
    # Runs at each call; `isinstance` of a protocol takes longer than a step of a small environment.
    return bool(getattr(env, "waits", False))


def env_gives(env: Env) -> frozenset[Need]:
    """What an environment gives, by its methods, its needs and its own `gives`; a wrapper's oracle by `gives` alone."""
    declared = gives_of(env)
    forks = frozenset[Need](() if env.branching is Branching.NONE else {FORKS})
    oracle = frozenset[Need]({ORACLE} if isinstance(env, Oracle) and not isinstance(env, Gives) else ())
    calls = frozenset[Need]({CALLS_TAKEN} if CALLS in needs_of(env) else ())
    seats = frozenset[Need]({SEATS} if seats_of(env) else ())
    return declared | forks | oracle | calls | seats


@runtime_checkable
class HashedData(Protocol):
    """An environment made of data files."""

    @property
    def data_hash(self) -> str:
        """SHA-256 of the files, for the run's manifest."""
        ...


@runtime_checkable
class Closable(Protocol):
    """An environment that holds processes or connections."""

    def close(self) -> None:
        """Releases them. Safe to call twice; later calls open them again."""
        ...


@runtime_checkable
class Wrapper(Protocol):
    """An environment around another one."""

    @property
    def env(self) -> Env:
        """The environment inside."""
        ...


@runtime_checkable
class HasKnownDeviations(Protocol):
    """An environment that deviates from the contract by its design."""

    @property
    def deviations(self) -> Mapping[str, str]:
        """By the name of a check of `bough check-env` that the environment fails, the reason."""
        ...


def deviations_of(env: Env) -> Mapping[str, str]:
    """The checks that an environment, or one that it wraps, fails by its design, each with the reason.

    Raises:
        ValueError: when `deviations` is no mapping from names to texts.
    """
    wrapped: Mapping[str, str] = deviations_of(env.env) if isinstance(env, Wrapper) else {}
    own = cast("object", env.deviations if isinstance(env, HasKnownDeviations) else {})
    field = f"{type(env).__name__}.deviations"
    if not isinstance(own, Mapping):
        raise ValueError(f"{field}: got a {type(own).__name__}; need a mapping of checks to reasons")
    for name, reason in cast("Mapping[object, object]", own).items():
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f"{field}: got the reason {reason!r} for {name!r}; need a text, such as 'states recur'")
    return {**wrapped, **cast("Mapping[str, str]", own)}


class EnvFault(Exception):
    """The environment raised, hung or returned the wrong type. The path becomes `FAILED`; the episode is retried."""


class UserCodeError(ValueError):
    """A permanent error in the user's environment; never retried. The message has its class, text, file and line."""
