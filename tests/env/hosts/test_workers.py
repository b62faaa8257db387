import asyncio
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.env.play import Seen, actions_of, is_running, seen, walk, walk_on, worlds

from bough.env import EnvFault, Host, InProcessHost, Replay, State, Step, UserCodeError, Workers
from bough.tree import Outcome, Task
from bough.usercode import load_module
from bough.worlds.frozenlake import FrozenLake
from bough.worlds.sokoban import Sokoban

Result = TypeVar("Result")
LAKE = FrozenLake(frozen=1.0, min_moves=4, max_steps=40)
TASK = Task(id="any")


def with_workers(host: Workers, use: Callable[[Workers], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        try:
            return await asyncio.wait_for(use(host), 60)
        finally:
            await host.close()

    return asyncio.run(run())


async def pid_of(host: Workers, state: State) -> int:
    return int(str((await host.step(state, "pid")).info["pid"]))


@pytest.mark.parametrize(
    "env",
    [FrozenLake(slip=0.3), Sokoban(boxes=2), Replay(env=worlds.Tape(lake=FrozenLake(slip=0.2)))],
    ids=["lake", "sokoban", "replay"],
)
def test_other_processes_play_the_same_episodes(env: FrozenLake | Sokoban | Replay) -> None:
    tasks = list(env.tasks("train", 6, 0))
    plans = [actions_of(seed, 12) for seed in range(6)]

    async def use(host: Workers) -> list[list[Seen]]:
        assert isinstance(host, Host)
        start = await host.start(tasks[0])
        assert await host.plan(start) == env.plan(env.start(tasks[0]))
        return await asyncio.gather(*(walk_on(host, task, plan) for task, plan in zip(tasks, plans, strict=True)))

    host = Workers(env=env)
    assert with_workers(host, use) == [walk(env, task, plan) for task, plan in zip(tasks, plans, strict=True)]
    assert host.replaced == 0


def test_episodes_survive_workers_killed_at_random_points() -> None:
    env = Replay(env=worlds.Tape(lake=LAKE))
    tasks = list(env.tasks("train", 24, 0))
    plans = [actions_of(seed, 30) for seed in range(24)]
    rng = random.Random(0)
    pids: set[int] = set()
    killed: list[int] = []
    faults: list[str] = []

    async def episode(host: Workers, task: Task, plan: list[str]) -> list[Seen]:
        state, trace = await again(lambda: host.start(task)), []
        for action in plan:
            step = await again(lambda state=state, action=action: host.step(state, action))
            pids.add(int(str(step.info["pid"])))
            trace.append(seen(step))
            if step.outcome != Outcome.OPEN:
                break
            state = step.state
        return trace

    async def again(call: Callable[[], Awaitable[Result]]) -> Result:
        while True:
            try:
                return await call()
            except EnvFault as fault:
                faults.append(str(fault))

    async def killer() -> None:
        while len(killed) < 7:
            await asyncio.sleep(rng.random() * 0.2)
            if alive := [pid for pid in pids if pid not in killed and is_running(pid)]:
                killed.append(rng.choice(alive))
                os.kill(killed[-1], signal.SIGKILL)

    async def round_of(host: Workers) -> list[list[Seen]]:
        return await asyncio.gather(*(episode(host, task, plan) for task, plan in zip(tasks, plans, strict=True)))

    async def use(host: Workers) -> None:
        kills = asyncio.create_task(killer())
        while not kills.done():
            assert await round_of(host) == expected
        assert await round_of(host) == expected

    expected = [walk(env, task, plan) for task, plan in zip(tasks, plans, strict=True)]
    host = Workers(env=env, count=3)
    with_workers(host, use)
    assert host.replaced == len(killed)
    assert 0 < len(faults) <= len(killed), "one call at most pays for each death"
    assert all("its worker died (exit status -9) and was replaced" in fault for fault in faults)
    assert not [pid for pid in pids if is_running(pid)]


def test_a_hung_call_gets_the_fault_and_those_behind_it_never_notice() -> None:
    async def use(host: Workers) -> None:
        state = await host.start(TASK)
        before = await pid_of(host, state)
        calls = [host.step(state, action) for action in ("a", "hang", "b", "c")]
        first, hung, *behind = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(hung, EnvFault)
        assert str(hung) == "Trouble.step (action 'hang'): no answer within 1 s; its worker was replaced"
        assert [step.state.observation for step in (first, *behind) if isinstance(step, Step)] == ["1", "1", "1"]
        assert not is_running(before)

    host = Workers(env=worlds.Trouble(), count=1, deadline_s=1.0)
    with_workers(host, use)
    assert host.replaced == 1


@pytest.mark.parametrize("action", ["fork", "forked fault", "stray"])
def test_a_reply_is_that_of_its_call(action: str) -> None:
    async def use(host: Workers) -> list[tuple[object, float]]:
        state, found = await host.start(TASK), list[tuple[object, float]]()
        for each in (action, "count", action, "count"):
            step = await host.step(state, each)
            state = step.state
            found.append((state.observation, step.reward))
        return found

    host = Workers(env=worlds.Trouble(), count=1)
    assert with_workers(host, use) == [(str(number), 0.0) for number in (1, 2, 3, 4)]
    assert host.replaced == 0


def test_the_child_of_a_fork_ends_in_this_process_too(capfd: pytest.CaptureFixture[str]) -> None:
    async def stepped() -> Step:
        host = InProcessHost(env=worlds.Trouble())
        return await host.step(await host.start(TASK), "fork")

    me = os.getpid()
    assert asyncio.run(stepped()).state.observation == "1"
    assert os.getpid() == me
    assert "Trouble.step: the child of a fork returned; do: end it with os._exit" in capfd.readouterr().err


def test_a_hung_worker_holds_up_no_other() -> None:
    async def use(host: Workers) -> None:
        state = await host.start(TASK)
        await asyncio.gather(host.step(state, "a"), host.step(state, "b"))
        hung = asyncio.create_task(host.step(state, "hang"))
        await asyncio.sleep(0)
        for _ in range(20):
            await host.step(state, "a")
        assert not hung.done()
        with pytest.raises(EnvFault):
            await hung

    with_workers(Workers(env=worlds.Trouble(), deadline_s=1.5), use)


def test_faults_say_what_happened_inside() -> None:
    async def use(host: Workers) -> None:
        state = await host.start(TASK)
        with pytest.raises(
            EnvFault, match=r"Trouble.step raised KeyError: 'the bottom of it' \(.*worlds.py, line \d+, in step\)$"
        ):
            await host.step(state, "raise")
        with pytest.raises(EnvFault, match=r"Trouble.step: got 'not a step' of type str; need a Step"):
            await host.step(state, "wrong")
        with pytest.raises(EnvFault, match=r"Trouble: got a State.value of type function that cannot be pickled"):
            await host.step(state, "unsendable")
        with pytest.raises(EnvFault, match=r"Trouble.start: got 3 of type int; need a State"):
            await host.start(Task(id="wrong"))
        with pytest.raises(UserCodeError, match=r"got a bad task; need a good one \(.*worlds.py, line \d+, in start\)"):
            await host.start(Task(id="bad"))
        with pytest.raises(EnvFault, match="got a state that no worker has returned"):
            await host.step(State(observation="", key="", value=0), "a")
        assert await host.plan(state) is None
        assert host.replaced == 0, "none of this hurts a worker"
        with pytest.raises(EnvFault, match=r"action 'die'\): its worker died \(exit status -9\) and was replaced"):
            await host.step(state, "die")

    with_workers(Workers(env=worlds.Trouble()), use)


def test_tasks_come_from_a_worker() -> None:
    async def use(host: Workers) -> None:
        assert await host.tasks("train", 2, 7) == tuple(FrozenLake(size=2).tasks("train", 2, 7))
        with pytest.raises(ValueError, match="got count=500 for split 'train'") as refused:
            await host.tasks("train", 500, 7)
        assert not isinstance(refused.value, UserCodeError)

    with_workers(Workers(env=FrozenLake(size=2)), use)


def test_a_large_environment_and_large_states_are_reported() -> None:
    lines: list[str] = []

    async def use(host: Workers) -> None:
        for size in (2**19, 2**20, 2**20 + 9, 2**22, 2**22):
            await host.start(Task(id="large", data={"size": size}))

    env = worlds.Trouble(unsendable=b"x" * (50 * 2**20))
    with_workers(Workers(env=env, count=1, notify=lines.append), use)
    assert lines[0].startswith(
        "Workers.env: Trouble has 50.0 MiB when pickled; each of 1 workers gets a copy, 50.0 MiB in all"
    )
    assert [line.partition(" when")[0] for line in lines[1:]] == [
        "Trouble: got a State.value of 1.0 MiB",
        "Trouble: got a State.value of 4.0 MiB",
    ]


def test_a_worker_that_dies_between_calls_costs_no_call_and_is_reported() -> None:
    async def use(host: Workers) -> None:
        state = await host.start(TASK)
        pid = await pid_of(host, state)
        os.kill(pid, signal.SIGKILL)
        while is_running(pid):
            await asyncio.sleep(0.01)
        assert await pid_of(host, state) != pid
        with pytest.raises(EnvFault, match="its worker died"):
            await host.step(state, "die")

    lines: list[str] = []
    host = Workers(env=worlds.Trouble(), count=1, notify=lines.append)
    with_workers(host, use)
    assert host.replaced == 2
    assert [line.partition(";")[0] for line in lines] == [
        "Trouble: a worker died between calls (exit status -9) and was replaced",
        "Trouble.step (action 'die'): its worker died (exit status -9) and was replaced",
    ]
    assert all(re.search(r"for memory \([\d.]+ of [\d.]+ GiB .*: lower `workers`", line) for line in lines)


def test_a_cancelled_call_leaves_a_clean_worker() -> None:
    async def use(host: Workers) -> None:
        state = await host.start(TASK)
        hung = asyncio.create_task(host.step(state, "hang"))
        behind = asyncio.create_task(host.step(state, "a"))
        await asyncio.sleep(0.1)
        hung.cancel()
        assert (await behind).state.observation == "1"
        with pytest.raises(asyncio.CancelledError):
            await hung

    host = Workers(env=worlds.Trouble(), count=1)
    with_workers(host, use)
    assert host.replaced == 1


def test_going_on_from_the_newest_state_replays_nothing_wherever_it_lives() -> None:
    env = Replay(env=worlds.Tape(lake=LAKE))

    async def episode(host: Workers, task: Task) -> int:
        state, replayed = await host.start(task), 0
        for _ in range(6):
            step = await host.step(state, "hop")
            replayed += step.replayed_steps
            state = step.state
        return replayed

    async def use(host: Workers) -> None:
        assert await asyncio.gather(*(episode(host, task) for task in env.tasks("train", 9, 0))) == [0] * 9
        states = [await host.start(env.tasks("train", 1, 0)[0])]
        for action in ("hop", "skip"):
            states.append((await host.step(states[-1], action)).state)
        assert [(await host.step(states[depth], "left")).replayed_steps for depth in (2, 1, 0, 2)] == [0, 1, 0, 2]

    with_workers(Workers(env=env, count=3), use)


def test_calls_go_to_the_least_busy_worker() -> None:
    async def use(host: Workers) -> list[Step]:
        state = await host.start(TASK)
        return await asyncio.gather(*(host.step(state, "nap") for _ in range(9)))

    pids = [step.info["pid"] for step in with_workers(Workers(env=worlds.Trouble(), count=3), use)]
    assert [pids.count(pid) for pid in set(pids)] == [3, 3, 3]


def test_states_are_values_for_other_workers_too() -> None:
    env = Replay(env=worlds.Tape(lake=LAKE))
    (task,) = env.tasks("train", 1, 0)

    async def use(host: Workers) -> bytes:
        return pickle.dumps((await host.step(await host.start(task), "hop")).state)

    kept = with_workers(Workers(env=env, count=4), use)

    async def use_again(host: Workers) -> Step:
        return await host.step(pickle.loads(kept), "left")

    step = with_workers(Workers(env=env, count=1), use_again)
    assert step.replayed_steps == 1
    assert seen(step) == walk(env, task, ["hop", "left"])[-1]


def test_one_host_serves_several_event_loops_and_closes_twice() -> None:
    host = Workers(env=worlds.Trouble(), count=1)
    pids = [asyncio.run(_one_call(host)) for _ in range(3)]
    assert len(set(pids)) == 1
    asyncio.run(host.close())
    asyncio.run(host.close())
    assert not is_running(pids[0])
    with pytest.raises(RuntimeError, match="after close"):
        asyncio.run(_one_call(host))


async def _one_call(host: Workers) -> int:
    return await pid_of(host, await host.start(TASK))


def test_closing_frees_a_call_that_hangs() -> None:
    async def run() -> None:
        host = Workers(env=worlds.Trouble(), count=1)
        state = await host.start(TASK)
        hung = asyncio.create_task(host.step(state, "hang"))
        behind = asyncio.create_task(host.step(state, "a"))
        await asyncio.sleep(0.1)
        await host.close()
        with pytest.raises(EnvFault, match="died"):
            await hung
        with pytest.raises(RuntimeError, match="after close"):
            await behind

    asyncio.run(asyncio.wait_for(run(), 120))


def test_workers_load_no_torch_and_keep_standard_output_clean(capfd: pytest.CaptureFixture[str]) -> None:
    async def use(host: Workers) -> Step:
        return await host.step(await host.start(TASK), "print")

    assert with_workers(Workers(env=worlds.Trouble()), use).info["torch"] is False
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "a line on standard output" not in printed.out


MAIN = """
import asyncio, sys
from dataclasses import dataclass
from bough.env import Branching, State, Step, Workers
from bough.tree import Task

@dataclass(frozen=True)
class Mine:
    branching: Branching = Branching.COPY
    instructions: str = ""
    def tasks(self, split, count, seed): return []
    def start(self, task): return State(observation="begun", key="", value=self)
    def step(self, state, action):
        while action == "hang": pass
        import os
        return Step(state=state, info={"pid": os.getpid()})

async def main():
    host = Workers(env=Mine(), count=1, deadline_s=1000)
    state = await host.start(Task(id="t"))
    step = await host.step(state, "go")
    print(state.observation, step.info["pid"], flush=True)
    if sys.argv[1:] == ["hang"]:
        await host.step(state, "hang")
    await host.close()

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_an_environment_may_be_defined_in_the_script_that_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(MAIN)
    ran = subprocess.run(
        [sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=60, check=True
    )
    begun, pid = ran.stdout.split()
    assert begun == "begun"
    assert not is_running(int(pid))


def test_workers_die_with_a_parent_that_is_killed_even_in_the_middle_of_a_call(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(MAIN)
    parent = subprocess.Popen([sys.executable, tmp_path / "script.py", "hang"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline().split()[1])
    assert is_running(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 120
    while is_running(worker):
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.02)


def test_states_that_cannot_travel_are_stepped_where_they_are() -> None:
    tasks = list(LAKE.tasks("train", 6, 0))
    plans = [actions_of(seed, 12) for seed in range(6)]

    async def use(host: Workers) -> list[list[Seen]]:
        traces = await asyncio.gather(*(walk_on(host, *each) for each in zip(tasks, plans, strict=True)))
        first = await host.start(tasks[0])
        await host.step(first, "left")
        with pytest.raises(EnvFault, match="no longer the newest"):
            await host.step(first, "left")
        return traces

    for env in (worlds.Tape(lake=LAKE), worlds.Patient(lake=LAKE)):
        assert with_workers(Workers(env=env), use) == [walk(LAKE, *each) for each in zip(tasks, plans, strict=True)]


def test_a_late_call_of_an_environment_that_waits_does_not_end_the_others() -> None:
    (task,) = LAKE.tasks("train", 1, 0)

    async def use(host: Workers) -> None:
        late = asyncio.ensure_future(host.step(await host.start(task), "late"))
        while not late.done():
            other = await host.start(task)
            await asyncio.sleep(0.05)
        with pytest.raises(EnvFault, match=r"late.*no answer within 2 s$"):
            await late
        assert host.replaced == 0
        state = (await host.step(other, "left")).state
        stuck = asyncio.ensure_future(host.step(await host.start(task), "late"))
        with pytest.raises(EnvFault, match=r"its worker died .exit status -9. and was replaced"):
            await host.step(await host.start(task), "die")
        with pytest.raises(EnvFault, match="its worker died"):
            await stuck
        assert host.replaced == 1
        with pytest.raises(EnvFault, match="got a state of a worker that was replaced; need a new start of its task"):
            await host.step(state, "left")
        await host.step(await host.start(task), "left")
        with pytest.raises(EnvFault, match=r"its worker died .exit status 1. and was replaced"):
            await host.step(await host.start(task), "base")
        with pytest.raises(EnvFault, match="no answer within 2 s; its worker was replaced"):
            await host.step(await host.start(task), "late")
        assert host.replaced == 3

    with_workers(Workers(env=worlds.Patient(lake=LAKE), count=1, deadline_s=2, notify=lambda _: None), use)


def test_an_environment_that_workers_cannot_load_stops_the_run_with_the_reason(tmp_path: Path) -> None:
    source = Path(worlds.__file__).read_text()
    (tmp_path / "gone.py").write_text(source)
    module = load_module(tmp_path / "gone.py")
    (tmp_path / "gone.py").unlink()
    with pytest.raises(UserCodeError, match=r"Trouble: got no environment in the worker(?s:.)*need a Python file"):
        with_workers(Workers(env=module.Trouble()), _one_call)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"count": 0}, "Workers.count: got 0; need at least 1"),
        ({"deadline_s": 0.0}, "Workers.deadline_s: got 0.0; need more than 0 seconds"),
        ({"env": worlds.Trouble(unsendable=lambda: 0)}, "got Trouble, which cannot be pickled"),
    ],
)
def test_bad_fields_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workers(**{"env": LAKE, **fields})  # type: ignore[arg-type]
