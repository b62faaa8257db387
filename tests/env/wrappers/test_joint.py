# ruff: noqa: ARG002
import threading
from dataclasses import dataclass, field

import pytest
from tests.env.play import worlds

from bough.env import Branching, ParallelCalls, Replay, Split, State, Step
from bough.tree import Outcome, Task
from bough.worlds.frozenlake import FrozenLake

TASK = Task(id="t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Says in capitals what it is told; the state is how many calls came before. `end` ends, `two` waits for two."""

    branching: Branching = Branching.COPY
    instructions: str = "Call."
    both: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}-{number}", seed=seed) for number in range(count)]

    def start(self, task: Task) -> State:
        return State(observation="?", key="0", value=0)

    def step(self, state: State, action: str) -> Step:
        if action == "two":
            self.both.wait(timeout=5)
        count = int(str(state.value)) + 1
        return Step(
            state=State(observation=f"{action.upper()}{count}", key=str(count), value=count),
            reward=1.0,
            valid=action != "bad",
            success=action == "end",
            outcome=Outcome.TERMINATED if action == "end" else Outcome.OPEN,
        )


def test_calls_are_done_in_an_order_that_keeps_what_they_need() -> None:
    env = ParallelCalls(env=Tools())
    step = env.step(env.start(TASK), "3 after 1: join $1 $2\n1: cats\n2: dogs")
    assert step.state.observation == "1: CATS1\n2: DOGS2\n3: JOIN CATS1 DOGS23"
    assert (step.reward, step.valid, step.outcome, step.info) == (3.0, True, Outcome.OPEN, {"calls": 3})
    after = env.step(step.state, "more")
    assert after.state.observation == "MORE4", "the state is that after the last call"


def test_one_call_is_a_call_as_ever() -> None:
    env = ParallelCalls(env=Tools())
    assert env.step(env.start(TASK), "cats: all").state.observation == "CATS: ALL1"
    assert env.step(env.start(TASK), "1: cats").state.observation == "1: CATS1"
    assert not env.step(env.start(TASK), "1: cats\n2: bad").valid


def test_what_ends_the_episode_leaves_the_rest() -> None:
    env = ParallelCalls(env=Tools())
    step = env.step(env.start(TASK), "1: cats\n2: end\n3: dogs\n4 after 3: more")
    assert (step.outcome, step.success, step.reward) == (Outcome.TERMINATED, True, 2.0)
    assert step.state.observation == "1: CATS1\n2: END2"


@pytest.mark.parametrize(
    ("action", "wrong"),
    [
        ("1: a\nb", 'Got the line "b"; need a number'),
        ("1: a\n1: b", "Got 2 calls with 1 numbers"),
        ("1: a\n2: b\n3: c\n4: d", "at most 3"),
        ("1: a\n2 after 5: b", r"Got calls after [5]; need numbers of other calls."),
        ("1 after 2: a\n2: b $1", "Got calls that wait for each other"),
        ("1: $1\n2: b", "Got calls that wait for each other"),
    ],
)
def test_what_has_no_order_does_nothing(action: str, wrong: str) -> None:
    env = ParallelCalls(env=Tools(), max_calls=3)
    start = env.start(TASK)
    step = env.step(start, action)
    assert wrong in step.state.observation
    assert (step.valid, step.reward, step.state.key) == (False, 0.0, start.key)
    assert env.step(step.state, "a").state.observation == "A1", "it goes on from where it was"


def test_calls_of_a_level_run_at_once_where_nothing_changes() -> None:
    env = ParallelCalls(env=Tools(), at_once=True)
    step = env.step(env.start(TASK), "1: two\n2: two\n3 after 1: x")
    assert step.state.observation == "1: TWO1\n2: TWO1\n3: X2", "each of a level begins in the same state"
    with pytest.raises(ValueError, match=r"ParallelCalls\.at_once: got Replay of branching replay; need one"):
        ParallelCalls(env=Replay(env=Tools()), at_once=True)


def test_a_joint_action_can_be_played_again() -> None:
    lake = FrozenLake(frozen=1.0, min_moves=4, max_steps=1000)
    (task,) = lake.tasks("train", 1, 0)
    env = ParallelCalls(env=Replay(env=worlds.Tape(lake=lake), keep=0))
    first = env.step(env.start(task), "1: left\n2: up")
    assert first.replayed_steps == 1
    second = env.step(first.state, "down")
    assert second.replayed_steps == 2
    assert (
        second.state.key
        == ParallelCalls(env=lake).step(ParallelCalls(env=lake).start(task), "1: left\n2: up\n3: down").state.key
    )
    assert env.plan(second.state) is None
