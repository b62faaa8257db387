"""Parallel calls: several calls in one action, with dependencies between them."""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, TypeAlias

from bough.env.env import Branching, State, Step
from bough.env.state_value import value_of
from bough.env.wrappers.wrapper import Wrapper
from bough.piece import AtLeast, piece
from bough.tree import AgentAction, Outcome, Task, plain_text

LINE = re.compile(r"\s*(\d+)(?:\s+after\s+(\d+(?:\s*,\s*\d+)*))?\s*:\s*(.*\S)\s*")
RESULT = re.compile(r"\$(\d+)")

Call: TypeAlias = tuple[str, frozenset[int]]
"""The text of a call, and the numbers of the calls it depends on."""


@piece
class ParallelCalls(Wrapper):
    """Experimental: parallel calls, a DAG in one action (DTA-Llama, arXiv 2501.12432), with one joined observation.

        1: search cats
        2: search dogs
        3 after 1, 2: compare $1 with $2

    A call after others starts when they end. $1 is replaced by the result of call 1, and makes the call depend on
    call 1. The observation joins the results by number. Rewards add up. A call that ends the episode cancels the rest.
    A single line without a number is an ordinary action. Any other text does nothing and is not valid.

    By default calls run one after another, which is correct in every environment. With `at_once` all calls of a level
    start from the same state, each in its own thread, and the next state is that after the level's last call. This
    suits read-only tools.

    An action is one turn in every budget, whatever its number of calls.

    The parser must accept several lines (`Tagged`). This follows a summary of the paper, not its text. The paper's
    runtime joins processes and threads; here an environment does the join. The method `dta_llama` trains on such plans,
    which `ParallelPaths` makes from DFSDT's paths.

    Attributes:
        env: The inner environment.
        max_calls: Maximum number of calls in an action.
        at_once: Whether the calls of a level run in parallel.
    """

    max_calls: Annotated[int, AtLeast(1)] = 8
    at_once: bool = False

    def __post_init__(self) -> None:
        if self.at_once and self.env.branching is not Branching.COPY:
            raise ValueError(
                f"ParallelCalls.at_once: got {type(self.env).__name__} of branching {self.env.branching}; need "
                "one whose states are values (copy)"
            )

    @property
    def instructions(self) -> str:
        """The inner environment's instructions, and the format of several calls."""
        return (
            f"{self.env.instructions}\nYou may do up to {self.max_calls} things at a time, a line each, with numbers: "
            '"1: this", "2: that". What needs the result of another says so: "3 after 1, 2: compare $1 with $2".'
        ).strip()

    def start(self, task: Task) -> State:
        """Returns the first state of a task."""
        return _outer(self.env.start(task))

    def step(self, state: State, action: str) -> Step:
        """Executes all calls of an action."""
        inner = value_of(state, State, "ParallelCalls")
        lines = [line for line in action.splitlines() if line.strip()]
        if len(lines) < 2 and not (lines and LINE.fullmatch(lines[0])):
            step = self.env.step(inner, action)
            return replace(step, state=_outer(step.state))
        calls = self._calls(lines)
        if isinstance(calls, str):
            return Step(state=replace(state, observation=calls), valid=False)
        return self._all(inner, calls)

    def plan(self, state: State) -> tuple[AgentAction, ...] | None:
        """Returns the inner oracle's plan; None too when the inner environment is no `Oracle`."""
        return self.inner_plan(value_of(state, State, "ParallelCalls"))

    def _calls(self, lines: Sequence[str]) -> dict[int, Call] | str:
        """Returns the calls by number, or an error text for the agent."""
        found = [LINE.fullmatch(line) for line in lines]
        calls: dict[int, Call] = {}
        for line, parts in zip(lines, found, strict=True):
            if parts is None:
                return f'Got the line "{line.strip()}"; need a number and a colon before each call.'
            named = {int(number) for number in re.findall(r"\d+", parts[2] or "")}
            calls[int(parts[1])] = (parts[3], frozenset(named))
        if len(calls) < len(lines) or len(lines) > self.max_calls:
            return (
                f"Got {len(lines)} calls with {len(calls)} numbers; need a number for each, and at most "
                f"{self.max_calls}."
            )
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
        """Executes calls level by level."""
        order = TopologicalSorter({number: named for number, (_, named) in calls.items()})
        order.prepare()
        results: dict[int, Step] = {}
        step = Step(state=inner)
        while order.is_active() and step.outcome is Outcome.OPEN:
            level = sorted(order.get_ready())
            texts = [RESULT.sub(lambda found: _given(found, results), calls[number][0]) for number in level]
            for number, done in zip(level, self._level(step.state, texts), strict=False):
                results[number] = step = done
            order.done(*level)
        inner = step.state
        return Step(
            state=replace(_outer(inner), observation=_joined(results)),
            reward=sum(each.reward for each in results.values()),
            outcome=step.outcome,
            valid=all(each.valid for each in results.values()),
            success=step.success,
            replayed_steps=sum(each.replayed_steps for each in results.values()),
            info={"calls": len(results)},
        )

    def _level(self, inner: State, texts: Sequence[str]) -> list[Step]:
        """Executes independent calls, up to one that ends the episode."""
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
    """Returns a state whose value is the inner state."""
    return replace(inner, value=inner)


def _given(found: re.Match[str], results: Mapping[int, Step]) -> str:
    """Returns the result of a call; without such a call, the text itself."""
    step = results.get(int(found[1]))
    return found[0] if step is None else plain_text(step.state.observation)


def _joined(results: Mapping[int, Step]) -> str:
    return "\n".join(f"{number}: {plain_text(results[number].state.observation)}" for number in sorted(results))
