"""Nim for two seats, each of which reads a private word: the last taker wins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bough.env import Branching, Split, State, Step
from bough.tree import Outcome, Task

FIRST, SECOND = "first", "second"
PRIVATE = {FIRST: "apple", SECOND: "zebra"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nim:
    """Take 1 or 2 from a heap, in turn. A wrong answer loses."""

    branching: Branching = Branching.COPY
    seats: ClassVar[Mapping[str, str]] = {FIRST: "You begin.", SECOND: "You reply."}
    instructions: ClassVar[str] = "Take 1 or 2. Who takes the last wins."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        del seed
        sizes = {"train": range(3, 100, 2), "dev": range(1000, 1100), "test": range(4, 100, 2)}[split]
        if count > len(sizes):
            raise ValueError(f"Nim: got {count} tasks; need at most {len(sizes)}")
        return [Task(id=f"nim {size}", data={"heap": size}) for size in sizes[:count]]

    def start(self, task: Task) -> State:
        heap = task.data["heap"]
        assert isinstance(heap, int)
        return _state(min(heap, 3 + heap % 5), FIRST)

    def step(self, state: State, action: str) -> Step:
        heap, seat = state.value, state.seat
        assert isinstance(heap, int)
        other = SECOND if seat == FIRST else FIRST
        valid = action in ("1", "2") and int(action) <= heap
        left = heap - int(action) if valid else heap
        if valid and left:
            return Step(state=_state(left, other))
        winner = seat if valid else other
        return Step(
            state=_state(left, other),
            outcome=Outcome.TERMINATED,
            valid=valid,
            success=winner == FIRST,
            payoffs={each: 1.0 if each == winner else -1.0 for each in PRIVATE},
            successes={each: each == winner for each in PRIVATE},
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """Play that loses nothing where there is such a play."""
        heap = state.value
        assert isinstance(heap, int)
        return (str(heap % 3 or 1),) if heap else None


def _state(heap: int, seat: str) -> State:
    actions = tuple(each for each in ("1", "2") if int(each) <= heap)
    return State(observation=f"{PRIVATE[seat]} {heap}", key=f"{seat} {heap}", value=heap, admissible=actions, seat=seat)
