"""A world that costs time and nothing else: every step sleeps for as long as ALFWorld takes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from bough.env import Branching, Split, State, Step
from bough.tree import Outcome, Task

WORDS = ("shelf", "drawer", "lamp", "mug", "table", "desk", "sofa", "safe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Says what lies around after every action; success is a matter of luck, which the actions draw.

    Attributes:
        step_s: How long a step sleeps.
        turns: Actions until the end; a path is over a turn or two earlier, as the task says.
    """

    step_s: float = 0.025
    turns: int = 8

    @property
    def branching(self) -> Branching:
        """A state is a value."""
        return Branching.COPY

    @property
    def instructions(self) -> str:
        """What there is to do."""
        return "Find the mug."

    def tasks(self, split: Split, count: int, seed: int) -> Sequence[Task]:
        """Numbered rooms."""
        return [Task(id=f"{split}-{seed}-{number}") for number in range(count)]

    def start(self, task: Task) -> State:
        """Enter a room."""
        return self._state((task.id,))

    def step(self, state: State, action: str) -> Step:
        """Sleep, and look around."""
        time.sleep(self.step_s)
        past = (*_past(state), action)
        after, luck = self._state(past), _luck(past)
        over = len(past) > self.turns - luck % 3
        won = over and luck % 2 == 0
        outcome = Outcome.TERMINATED if over else Outcome.OPEN
        return Step(state=after, reward=float(won), outcome=outcome, success=won)

    def _state(self, past: tuple[str, ...]) -> State:
        luck = _luck(past)
        seen = [WORDS[(luck >> shift) % len(WORDS)] for shift in (0, 3, 6, 9)]
        return State(observation=f"You see a {', a '.join(seen)}.", key=str(luck), value=past)


def _past(state: State) -> tuple[str, ...]:
    past = state.value
    assert isinstance(past, tuple)
    return past


def _luck(past: tuple[str, ...]) -> int:
    return int.from_bytes(blake2b("\n".join(past).encode(), digest_size=6).digest(), "big")
