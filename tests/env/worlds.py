"""Environments that misbehave on purpose. Loaded by path, as a user's own file is, so workers must do so too."""

# ruff: noqa: ARG002

import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from bough.env import Branching, Split, State, Step
from bough.env.hosts.serve import Reply, Verdict, framed
from bough.tree import Outcome, Task
from bough.worlds.frozenlake import FrozenLake


def fork_and_wait() -> bool:
    """Forks, and waits for the end of the child, for a while. Returns whether this is the child."""
    child = os.fork()
    for _ in range(200 if child else 0):
        if os.waitpid(child, os.WNOHANG)[0]:
            break
        time.sleep(0.01)
    return child == 0


def write_reply(reply: Reply) -> None:
    """Writes a reply of no call into the channel of this worker."""
    sockets = (
        int(name) for name in os.listdir("/proc/self/fd") if stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode)
    )
    os.write(next(sockets), framed(reply))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A counter that obeys: hang, nap, die, raise, wrong, unsendable, print, fork, forked fault, stray."""

    limit: int = 1000
    unsendable: Any = None

    branching: Branching = Branching.COPY
    instructions: str = "Count."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}-{seed}-{index}") for index in range(count)]

    def start(self, task: Task) -> State:
        if task.id == "bad":
            raise ValueError("got a bad task; need a good one")
        if task.id == "raise":
            raise KeyError("start")
        if task.id == "wrong":
            return 3  # type: ignore[return-value]
        if task.id == "large":
            return State(observation="0", key="0", value=b"x" * int(str(task.data["size"])))
        return State(observation="0", key="0", value=0)

    def step(self, state: State, action: str) -> Step:
        count = int(str(state.value)) + 1
        after = State(observation=str(count), key=str(count), value=count)
        if action == "hang":
            time.sleep(1000)
        if action == "nap":
            time.sleep(0.1)
        if action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "raise":
            raise KeyError("the bottom of it")
        if action == "wrong":
            return "not a step"  # type: ignore[return-value]
        if action == "unsendable":
            return Step(state=replace(after, value=lambda: 0))
        if action in ("fork", "forked fault") and fork_and_wait() and action == "forked fault":
            raise SystemExit(0)
        if action == "stray":
            write_reply(
                Reply(verdict=Verdict.ANSWER, answer=Step(state=replace(after, observation="stray"), reward=9.0))
            )
        if action == "print":
            print("a line on standard output")
        return Step(
            state=after,
            outcome=Outcome.TRUNCATED if count >= self.limit else Outcome.OPEN,
            info={"pid": os.getpid(), "torch": "torch" in sys.modules},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """Answers with whatever it is given."""

    answer: Any

    branching: Branching = Branching.COPY
    instructions: str = ""

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return []

    def start(self, task: Task) -> State:
        return self.answer

    def step(self, state: State, action: str) -> Step:
        return self.answer

    def plan(self, state: State) -> tuple[str, ...] | None:
        return self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """A lake whose states are alive: they can be stepped once, and cannot be pickled. With `drift` starts differ."""

    lake: FrozenLake = field(default_factory=FrozenLake)
    drift: bool = False
    starts: list[str] = field(default_factory=list, compare=False)

    branching: Branching = Branching.NONE

    @property
    def instructions(self) -> str:
        return self.lake.instructions

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return self.lake.tasks(split, count, seed)

    def start(self, task: Task) -> State:
        self.starts.append(task.id)
        return self._live(self.lake.start(task))

    def step(self, state: State, action: str) -> Step:
        step = self.lake.step(self._use_up(state), action)
        return replace(step, state=self._live(step.state), info={"pid": os.getpid()})

    def _use_up(self, state: State) -> State:
        live: Iterator[State] = state.value  # type: ignore[assignment]
        once = next(live, None)
        if once is None:
            raise RuntimeError("this state is no longer the newest")
        return once

    def _live(self, state: State) -> State:
        drift = f" {len(self.starts)}" if self.drift else ""
        return replace(state, observation=state.observation + drift, value=(once for once in [state]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient(Tape):
    """A `Tape` that waits: `late` waits for ever, `die` ends the process, `base` raises what is no `Exception`."""

    waits: ClassVar[bool] = True

    def step(self, state: State, action: str) -> Step:
        if action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "base":
            raise BaseException("the bottom of it")
        if action == "late":
            time.sleep(1000)
        return Tape.step(self, state, action)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOracle(Tape):
    """A `Tape` that knows its way, without using its state up."""

    def plan(self, state: State) -> tuple[str, ...] | None:
        rows = state.observation
        return ("left",) if "P" in rows else None
