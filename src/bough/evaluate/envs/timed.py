"""Validated, timed calls of an environment, each with a deadline."""

import math
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TypeVar

from bough.env import Env, EnvFault, Split, State, Step
from bough.env.checked import ValidatedEnv
from bough.tree import AgentAction, Task

Item = TypeVar("Item")


class Overdue(BaseException):
    """Raised inside a call at its deadline. No `except Exception` of the environment catches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedEnv:
    """Calls an environment in this process, validates the results and records the time of each call.

    Attributes:
        env: The environment.
        deadline_s: Maximum seconds of a call. It holds in the main thread of a POSIX system only, by a timer signal.
        took_ms: By call, the milliseconds of each: "tasks", "start", "step", "plan", "branch".
    """

    env: Env
    deadline_s: float
    took_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict[str, list[float]](list))

    @property
    def _checked(self) -> ValidatedEnv:
        return ValidatedEnv(env=self.env)

    def tasks(self, split: Split, count: int, seed: int) -> tuple[Task, ...]:
        """`Env.tasks`.

        Raises:
            EnvFault: when the environment raises, is late, or returns the wrong type; likewise in `start`, `step` and
                `plan`.
            ValueError: when the split has fewer tasks.
        """
        with self._timed("tasks"):
            return self._checked.tasks(split, count, seed)

    def start(self, task: Task) -> State:
        """`Env.start`."""
        with self._timed("start"):
            try:
                return self._checked.start(task)
            except ValueError as error:
                raise EnvFault(f"start of task {task.id} of its own tasks() raised {error}") from error

    def step(self, state: State, action: AgentAction, timed_as: str = "step") -> Step:
        """`Env.step`; "branch" is the time of a step of a state that is not the newest."""
        with self._timed(timed_as):
            return self._checked.step(state, action)

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """`Oracle.plan`."""
        with self._timed("plan"):
            return self._checked.plan(state)

    @contextmanager
    def _timed(self, call: str) -> Generator[None]:
        begin = time.perf_counter()
        try:
            with deadline(self.deadline_s):
                yield
        except Overdue:
            raise EnvFault(f"{call}: no result within {self.deadline_s:g} s") from None
        self.took_ms[call].append(1000 * (time.perf_counter() - begin))


@contextmanager
def deadline(seconds: float) -> Generator[None]:
    """Raises `Overdue` in the block after some seconds; without effect outside of the main thread."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def late(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise Overdue

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def within(seconds: float, items: Iterable[Item]) -> Iterator[Item]:
    """Items until the time is over, at least one."""
    end = time.monotonic() + seconds
    for number, item in enumerate(items):
        if number and time.monotonic() > end:
            return
        yield item


def quantile(values: Iterable[float], share: float) -> float:
    """The quantile by nearest rank; nan without values."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)] if ranked else math.nan
