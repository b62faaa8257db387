"""A game for two seats: own weights, earlier versions, frozen models and scripts as opponents.

bough train grpo --on examples/nim.py:world
bough train grpo --on examples/nim.py:world policies.second='EarlierVersion(every=10)'
"""

from dataclasses import dataclass
from typing import ClassVar, cast

from bough.engine import Sampling
from bough.env import Branching, Split, State, Step
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.tree import Outcome, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Nim:
    """Take 1, 2 or 3 from a heap, in turn. The seat that takes the last one wins; a wrong answer loses."""

    branching = Branching.COPY
    instructions = "Take 1, 2 or 3. Who takes the last one wins."
    seats: ClassVar = {"first": "You begin.", "second": "You reply."}

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        """Heaps of 5 to 24; every fourth is a test task."""
        del seed
        heaps = [heap for heap in range(5, 25) if (heap % 4 == 1) == (split == "test")]
        return [Task(id=f"nim {heap}", data={"heap": heap}) for heap in heaps[:count]]

    def start(self, task: Task) -> State:
        """The heap, before the first seat."""
        return self._state(cast("int", task.data["heap"]), "first")

    def step(self, state: State, action: str) -> Step:
        """Take, and pass on to the other seat."""
        heap, mover = cast("int", state.value), state.seat
        other = "second" if mover == "first" else "first"
        valid = action in (state.admissible or ())
        left = heap - int(action) if valid else heap
        if valid and left:
            return Step(state=self._state(left, other))
        winner = mover if valid else other
        return Step(
            state=self._state(left, other),
            outcome=Outcome.TERMINATED,
            valid=valid,
            success=winner == "first",
            payoffs={seat: 1.0 if seat == winner else -1.0 for seat in self.seats},
            successes={seat: seat == winner for seat in self.seats},
        )

    def plan(self, state: State) -> tuple[str, ...] | None:
        """The oracle leaves a multiple of 4 where it can."""
        heap = cast("int", state.value)
        return (str(heap % 4 or 1),) if heap else None

    def _state(self, heap: int, seat: str) -> State:
        actions = tuple(str(take) for take in (1, 2, 3) if take <= heap)
        return State(observation=f"heap {heap}", key=f"{seat} {heap}", value=heap, admissible=actions, seat=seat)


def world() -> World:
    """Trains in some minutes on two CPU cores."""
    return World(
        name="nim",
        env=Nim(),
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=512),
        limits=Limits(turns=24),
        sampling=Sampling(max_tokens=4),
        optimizer=Optimizer(learning_rate=5e-4, minibatches=2),
        warmup=Warmup(demonstrations=15, epochs=20, learning_rate=3e-3, batch_tokens=512),
        schedule=Schedule(steps=40, batch_tasks=8),
        tasks=Tasks(split="train", count=15),
        evaluation=Evaluation(tasks=Tasks(split="test", count=5), every=10),
    )
