"""Several calls in one action, which say what they need of each other."""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from bough.env import Branching, Env, Oracle, Split, State, Step, env_gives
from bough.tree import Outcome, Task
from bough.tree.needs import ORACLE, Need

LINE = re.compile(r"\s*(\d+)(?:\s+after\s+(\d+(?:\s*,\s*\d+)*))?\s*:\s*(.*\S)\s*")
RESULT = re.compile(r"\$(\d+)")

Call: TypeAlias = tuple[str, frozenset[int]]
"""What to do, and the numbers of the calls that come before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelCalls:
    """Experimental: parallel calls, a DAG in one action (DTA-Llama, arXiv 2501.12432), joined in one reading.

        1: search cats
        2: search dogs
        3 after 1, 2: compare $1 with $2

    Calls that come after others wait for them; $1 stands for what call 1 gave, and makes a call come after it. What
    they all give is read at once, by number. Rewards add up. When a call ends the episode the rest is left. An action
    of one line without a number is a call as ever, and one that is neither does nothing and is not valid.

    By default calls are carried out one after another, which is right in every environment. With `at_once` all calls of
    a level begin in the same state, each in a thread of its own, and the state after the level is that after its last
    call: for tools that look things up and change nothing.

    An action is one turn in every budget, however many calls there are in it.

    The parser must let several lines pass (`Tagged`). Of the paper a summary was read, not its text: it trains a model
    on plans made from DFSDT's paths, and its runtime has processes and threads with a join; here that is an
    environment.

    Attributes:
        env: What is called.
        most: Most calls in an action.
        at_once: Whether the calls of a level are carried out in parallel.
    """

    env: Env
    most: int = 8
    at_once: bool = False

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"ParallelCalls.most: got {self.most}; need at least 1")
        if self.at_once and self.env.branching is not Branching.COPY:
            raise ValueError(
                f"ParallelCalls.at_once: got {type(self.env).__name__} of branching {self.env.branching}; need one whose "
                "states are values (copy)"
            )

    @property
    def branching(self) -> Branching:
        """The inner environment's."""
        return self.env.branching

    @property
    def instructions(self) -> str:
        """What the inner environment tells, and how several calls are written."""
        return (
            f"{self.env.instructions}\nYou may do up to {self.most} things at a time, a line each, with numbers: "
            '"1: this", "2: that". What needs the result of another says so: "3 after 1, 2: compare $1 with $2".'
        ).strip()

    @property
    def gives(self) -> frozenset[Need]:
        """The inner environment's oracle."""
        return env_gives(self.env) & {ORACLE}

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """The inner environment's tasks."""
        return list(self.env.tasks(split, count, seed))

    def start(self, task: Task) -> State:
        """The first state of a task."""
        return _outer(self.env.start(task))

    def step(self, state: State, action: str) -> Step:
        """Carry out all calls of an action."""
        inner = _inner(state)
        lines = [line for line in action.splitlines() if line.strip()]
        if len(lines) < 2 and not (lines and LINE.fullmatch(lines[0])):
            step = self.env.step(inner, action)
            return replace(step, state=_outer(step.state))
        calls = self._calls(lines)
        if isinstance(calls, str):
            return Step(state=replace(state, observation=calls), valid=False)
        return self._all(inner, calls)

    def plan(self, state: State) -> tuple[str, ...] | None:
        """The inner oracle's plan; None too when the inner environment is no `Oracle`."""
        return self.env.plan(_inner(state)) if isinstance(self.env, Oracle) else None

    def _calls(self, lines: Sequence[str]) -> dict[int, Call] | str:
        """The calls by number; or what is wrong with them."""
        found = [LINE.fullmatch(line) for line in lines]
        calls: dict[int, Call] = {}
        for line, parts in zip(lines, found, strict=True):
            if parts is None:
                return f'Got the line "{line.strip()}"; need a number and a colon before each call.'
            named = {int(number) for number in re.findall(r"\d+", parts[2] or "")}
            calls[int(parts[1])] = (parts[3], frozenset(named))
        if len(calls) < len(lines) or len(lines) > self.most:
            return f"Got {len(lines)} calls with {len(calls)} numbers; need a number for each, and at most {self.most}."
        if missing := {number for _, named in calls.values() for number in named} - set(calls):
            return f"Got calls after {sorted(missing)}; need numbers of other calls."
        for number, (text, named) in calls.items():
            used = {int(other) for other in RESULT.findall(text)} & set(calls)
            calls[number] = (text, named | used)
        try:
            TopologicalSorter({number: named for number, (_, named) in calls.items()}).prepare()
        except CycleError:
            return "Got calls that wait for each other; need an order."
        return calls

    def _all(self, inner: State, calls: Mapping[int, Call]) -> Step:
        """Carry calls out, level by level."""
        order = TopologicalSorter({number: named for number, (_, named) in calls.items()})
        order.prepare()
        said: dict[int, Step] = {}
        step = Step(state=inner)
        while order.is_active() and step.outcome is Outcome.OPEN:
            level = sorted(order.get_ready())
            texts = [RESULT.sub(lambda found: _given(found, said), calls[number][0]) for number in level]
            for number, done in zip(level, self._level(step.state, texts), strict=False):
                said[number] = step = done
            order.done(*level)
        inner = step.state
        return Step(
            state=replace(_outer(inner), observation=_joined(said)),
            reward=sum(each.reward for each in said.values()),
            outcome=step.outcome,
            valid=all(each.valid for each in said.values()),
            success=step.success,
            replayed_steps=sum(each.replayed_steps for each in said.values()),
            info={"calls": len(said)},
        )

    def _level(self, inner: State, texts: Sequence[str]) -> list[Step]:
        """Carry out calls that do not wait for each other, up to one that ends the episode."""
        if self.at_once and len(texts) > 1:
            with ThreadPoolExecutor(max_workers=len(texts)) as pool:
                steps = list(pool.map(self.env.step, [inner] * len(texts), texts))
        else:
            steps: list[Step] = []
            for text in texts:
                steps.append(self.env.step(inner, text))
                inner = steps[-1].state
                if steps[-1].outcome is not Outcome.OPEN:
                    break
        ended = next((at for at, step in enumerate(steps) if step.outcome is not Outcome.OPEN), len(steps) - 1)
        return steps[: ended + 1]


def _outer(inner: State) -> State:
    """A state whose value is the inner one, as the inner environment returned it."""
    return replace(inner, value=inner)


def _inner(state: State) -> State:
    if not isinstance(state.value, State):
        raise TypeError(
            f"ParallelCalls: got a state with a value of type {type(state.value).__name__}; need one of its own"
        )
    return state.value


def _given(found: re.Match[str], said: Mapping[int, Step]) -> str:
    """What a call gave; where there is no such call, the text as it is."""
    step = said.get(int(found[1]))
    return found[0] if step is None else step.state.observation


def _joined(said: Mapping[int, Step]) -> str:
    return "\n".join(f"{number}: {said[number].state.observation}" for number in sorted(said))
