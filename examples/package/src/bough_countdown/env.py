"""Counting down to zero, a number a turn."""

from dataclasses import dataclass
from random import Random
from typing import cast

from bough.env import Branching, Split, State, Step
from bough.env.splits import draw_instances, instance_task
from bough.tree import Outcome, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Countdown:
    """Count down by a step, such as 9 6 3 0. A wrong number ends the episode.

    Attributes:
        highest: Largest number of a step, 1 or more.
        turns: Numbers to say.
    """

    highest: int = 40
    turns: int = 3
    branching = Branching.COPY
    instructions = "Count down to 0 by the step. Answer with the next number."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Different steps; the step decides the split."""
        steps = draw_instances(
            name="Countdown", split=split, count=count, seed=seed, propose=self._propose, content=str, accept=bool
        )
        return [instance_task(name="countdown", content=str(step), data={"step": step}) for step in steps]

    def start(self, task: Task) -> State:
        """The first number."""
        step = cast("int", task.data["step"])
        return self._state(step, step * self.turns)

    def step(self, state: State, action: str) -> Step:
        """Compare the next number."""
        step, now = cast("tuple[int, int]", state.value)
        if action.strip() != str(now - step):
            return Step(state=state, outcome=Outcome.TERMINATED, valid=action.strip().isdecimal())
        after, reward = self._state(step, now - step), 1 / self.turns
        if now > step:
            return Step(state=after, reward=reward)
        return Step(state=after, reward=reward, outcome=Outcome.TERMINATED, success=True)

    def plan(self, state: State) -> tuple[str, ...]:
        """The numbers to 0."""
        step, now = cast("tuple[int, int]", state.value)
        return tuple(str(number) for number in range(now - step, -1, -step))

    def _propose(self, random: Random) -> int:
        return random.randint(1, self.highest)

    def _state(self, step: int, now: int) -> State:
        text = f"step {step} now {now}"
        return State(observation=text, key=text, value=(step, now))
