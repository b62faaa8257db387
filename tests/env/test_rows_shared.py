"""What an episode changes in its row reaches no other episode."""

# ruff: noqa: ARG001

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from bough.env import Branching, Env, InProcessHost, Replay, State, Step, call, tools_env
from bough.tree import Action, Task, copied

Row = dict[str, Any]

ROW: Row = {
    "prompt": "buy tea",
    "stock": ["tea", "oil"],
    "want": ["tea"],
    "deep": {"a": [{"b": [1]}]},
    "split": "train",
}
DONE = Action(text="done")


def keeps(row: Row) -> Row:
    return {"stock": row["stock"], "basket": []}


def pops(row: Row) -> Row:
    row["deep"]["a"][0]["b"].append(2)
    row["stock"].append(f"{len(row['stock'])} goods")
    return {"stock": row["stock"], "basket": []}


def uncopied(row: Row) -> Row:
    return {"stock": row["stock"], "basket": [], "lock": threading.Lock()}


def buy(state: Row, goods: list[Any]) -> str:
    """Buy goods."""
    for good in goods:
        state["stock"].remove(good)
        state["basket"].append(good)
    goods.clear()
    return f"{len(state['stock'])} left"


def won(state: Row, row: Row, answer: str) -> bool:
    return state["basket"] == [row["want"].pop()]


def plan(state: Row, row: Row) -> list[Action | str]:
    return [call(buy, goods=[row["want"].pop()]), "done"]


def key(state: Row, row: Row) -> str:
    return f"{row['want'].pop()} {state['basket']}"


def host_steps(env: Env, task: Task, actions: tuple[Action, ...]) -> list[Step]:
    async def played() -> list[Step]:
        host = InProcessHost(env=env)
        state, steps = await host.start(task), list[Step]()
        for action in actions:
            steps.append(await host.step(state, action))
            state = steps[-1].state
        return steps

    return asyncio.run(played())


def own_steps(env: Env, task: Task, actions: tuple[Action, ...]) -> list[Step]:
    state, steps = env.start(task), list[Step]()
    for action in actions:
        steps.append(env.step(state, action))
        state = steps[-1].state
    return steps


STATES = [(state, each) for state in (keeps, pops) for each in (*Branching, None)]
STATES += [(uncopied, each) for each in (Branching.NONE, Branching.REPLAY, None)]


@pytest.mark.parametrize(("state", "branching"), STATES)
@pytest.mark.parametrize("steps", [host_steps, own_steps], ids=["host", "direct"])
def test_episodes_of_a_task_are_equal(
    state: Callable[[Row], Row],
    branching: Branching | None,
    steps: Callable[[Env, Task, tuple[Action, ...]], list[Step]],
) -> None:
    env = tools_env(tools=[buy], tasks=[ROW], reward=won, state=state, plan=plan, key=key, branching=branching)
    (task,) = env.tasks("train", 1, 0)
    actions = env.plan(env.start(task))
    assert actions == (call(buy, goods=["tea"]), DONE)
    first = steps(env, task, actions)
    assert first[-1].reward == 1
    for _ in range(2):
        again = steps(env, task, actions)
        assert [(step.state.observation, step.state.key, step.reward) for step in again] == [
            (step.state.observation, step.state.key, step.reward) for step in first
        ]
    assert task.data == ROW
    assert env.tasks("train", 1, 0)[0].data == ROW
    assert actions == (call(buy, goods=["tea"]), DONE), "a tool has its own arguments"


def taken(state: Row, row: Row) -> list[Action]:
    """A plan whose argument is a list of the state."""
    return [call(take, goods=state["stock"])]


def take(state: Row, goods: list[Any]) -> str:
    """Take goods."""
    state["stock"].clear()
    return "ok"


def test_the_arguments_of_a_plan_are_no_part_of_the_state() -> None:
    env = tools_env(tools=[take], tasks=[ROW], reward=won, state=keeps, plan=taken, branching=Branching.NONE)
    (task,) = env.tasks("train", 1, 0)
    (action, *_) = env.plan(env.start(task)) or ()
    state = env.start(task)
    assert env.step(state, action).valid
    assert action == call(take, goods=["tea", "oil"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pantry:
    """An environment that hands out its own rows, and changes them."""

    branching: Branching
    rows: tuple[Task, ...] = (Task(id="a", data=ROW),)
    instructions: str = ""

    def tasks(self, split: str, count: int, seed: int) -> list[Task]:
        del split, count, seed
        return list(self.rows)

    def start(self, task: Task) -> State:
        stock: Any = task.data["stock"]
        stock.pop()
        return State(observation=f"{len(stock)}", key=f"{len(stock)}", value=task)

    def step(self, state: State, action: str) -> Step:
        task: Any = state.value
        task.data["deep"]["a"].append(action)
        return Step(state=State(observation=f"{len(task.data['deep']['a'])}", key="", value=task))


@pytest.mark.parametrize("branching", Branching)
@pytest.mark.parametrize("replay", [False, True])
def test_an_environment_that_changes_its_tasks_gets_copies(branching: Branching, replay: bool) -> None:
    rows = (Task(id="a", data=copied(ROW)),)  # type: ignore[arg-type]
    inner = Pantry(branching=branching, rows=rows)
    env: Env = Replay(env=inner, keep=0) if replay else inner

    async def observed() -> list[object]:
        host = InProcessHost(env=env)
        (task,) = await host.tasks("train", 1, 0)
        state = await host.start(task)
        first = await host.step(state, "x")  # type: ignore[arg-type]
        if replay:
            assert (await host.step(state, "y")).state.observation == first.state.observation  # type: ignore[arg-type]
        return [state.observation, first.state.observation]

    assert asyncio.run(observed()) == asyncio.run(observed()) == ["1", "2"]
    assert rows[0].data == ROW


def test_a_copy_shares_no_container() -> None:
    lock = threading.Lock()
    value: Mapping[str, Any] = {"a": [{"b": (1, [2])}], "lock": lock, "text": "x" * 10}
    other: Any = copied(value)
    assert other == value
    assert other["lock"] is lock, "what has no copy is shared"
    other["a"][0]["b"][1].append(3)
    assert value["a"] == [{"b": (1, [2])}]
