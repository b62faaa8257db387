"""A small stage: a world of letters, a renderer that everybody can read, and an engine that follows a script."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.plain_renderer import PlainRenderer

from bough.context import Context, Full, Plain
from bough.engine import Engine, Request, Sampling, Scripted
from bough.engine.scripted import Reply
from bough.env import Branching, Host, InProcessHost, Split, State, Step
from bough.rollout import Agent, Deadlines, Explorer, Limits, RolloutRunner, Rollouts
from bough.tree import Action, Message, Outcome, Task, Tool

STOP = 0
LIMITS, FULL = Limits(), Full()


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters(PlainRenderer):
    """A token is a letter; `{` `}` stand around what is read."""

    stop_tokens: tuple[int, ...] = (STOP,)

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...]:
        del tools
        system = "" if messages[0].role == "system" else self._read(": ")
        return (*system, *(token for message in messages for token in self._message(message)))

    def extend(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> tuple[int, ...]:
        del tools
        return self._read(messages[-1].content)

    def parse(self, tokens: Sequence[int], tools: Sequence[Tool] = ()) -> Action:
        del tools
        return Action(text=self.text(tokens))

    def write(self, action: str) -> tuple[int, ...]:
        return (*map(ord, action), STOP)

    def text(self, tokens: Sequence[int]) -> str:
        return "".join(chr(token) for token in tokens if token != STOP)

    def _message(self, message: Message) -> tuple[int, ...]:
        return message.tokens or self._read(f"{message.content}: " if message.role == "system" else message.content)

    def _read(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, f"{{{text}}}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Write `a` three times. What goes wrong is asked for by name: `die`, `hang`, `nap`, `raise`, `wrong`."""

    length: int = 3
    pay: float = 1.0

    branching: Branching = Branching.COPY
    instructions: str = "go"

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}-{index}", seed=seed) for index in range(count)]

    def start(self, task: Task) -> State:
        if task.id.startswith("never"):
            raise RuntimeError("no such world")
        if task.id.startswith("stuck"):
            time.sleep(1000)
        return State(observation=".", key="", value="")

    def step(self, state: State, action: str) -> Step:
        if action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "hang":
            time.sleep(1000)
        if action == "nap":
            time.sleep(0.05)
        if action == "raise":
            raise KeyError("a step too far")
        if action == "wrong":
            return action  # type: ignore[return-value]
        said = f"{state.value}{action}"
        over = len(said) >= self.length
        success = said == "a" * self.length
        return Step(
            state=State(observation=said, key=said, value=said),
            outcome=Outcome.TERMINATED if over else Outcome.OPEN,
            success=success,
            reward=self.pay * said.count("a") if over else 0.0,
            valid=action in ("a", "b"),
            replayed_steps=2 if action == "r" else 0,
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        said = str(state.value)
        return ("a",) * (self.length - len(said)) if set(said) <= {"a"} else None


def says(choose: Callable[[random.Random], str]) -> Callable[[Request], Reply]:
    """A script that writes what is chosen at random by the request's seed."""
    return lambda request: tuple(map(ord, choose(random.Random(request.seed))))


def runner(
    engine: Engine,
    host: Host | None = None,
    *,
    limits: Limits = LIMITS,
    context: Context = FULL,
    max_tokens: int = 8,
    deadlines: Deadlines | None = None,
    at_once: int = 64,
) -> RolloutRunner:
    """Everything that a tree needs to grow."""
    agent = Agent(
        engine=engine, renderer=Letters(), context=context, parser=Plain(), sampling=Sampling(max_tokens=max_tokens)
    )
    host = InProcessHost(env=World()) if host is None else host
    deadlines = Deadlines() if deadlines is None else deadlines
    return RolloutRunner(
        agent=agent, host=host, instructions="go", limits=limits, deadlines=deadlines, max_concurrent=at_once
    )


def grow(place: RolloutRunner, explorer: Explorer, *names: str, seed: int = 0) -> Rollouts:
    """Trees of tasks with these names."""

    async def main() -> Rollouts:
        try:
            return await place.run(explorer, [Task(id=name) for name in names or ("task",)], seed=seed)
        finally:
            await place.host.close()

    return asyncio.run(main())


def scripted(choose: Callable[[random.Random], str], **config: int) -> Scripted:
    """An engine that writes what is chosen."""
    return Scripted(script=says(choose), **config)
