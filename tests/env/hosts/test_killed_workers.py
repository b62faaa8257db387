"""Worlds in worker processes: a process that is killed in the middle loses no other episode."""

import asyncio
import os
import signal

import pytest
from tests.env.play import is_running
from tests.missing import need_world

from bough.cli.find import find_env
from bough.env import EnvFault, Oracle, Replay, Step, Workers
from bough.env.env import Env
from bough.evaluate.envs.descendants import VARIABLE, begin_mark, descendants
from bough.tree import AgentAction, Outcome, Task
from bough.worlds.scienceworld import ScienceWorld

EPISODES, TURNS = 6, 4


def trace_of(step: Step) -> tuple[object, str, float, Outcome, bool]:
    return (step.state.observation, step.state.key, step.reward, step.outcome, step.success)


def planned(env: Env, task: Task) -> list[tuple[AgentAction, tuple[object, ...]]]:
    """The first turns of the oracle on a task, with what they give in this process."""
    state, turns = env.start(task), []
    assert isinstance(env, Oracle)
    for action in (env.plan(state) or ())[:TURNS]:
        step = env.step(state, action)
        turns.append((action, trace_of(step)))
        state = step.state
        if step.outcome is not Outcome.OPEN:
            break
    return turns


async def killed_in_the_middle(
    env: Env, tasks: list[Task], turns: list[list[tuple[AgentAction, tuple[object, ...]]]]
) -> None:
    """Plays all episodes at once, kills a process during each turn, and repeats only the call that it ran."""
    host = Workers(env=env, count=2, deadline_s=120, startup_s=120, notify=[].append)
    pids: set[int] = set()
    faults = 0
    try:
        states = list(await asyncio.gather(*map(host.start, tasks)))
        for turn in range(max(map(len, turns))):
            living = [number for number in range(len(tasks)) if turn < len(turns[number])]
            calls = {
                number: asyncio.create_task(host.step(states[number], turns[number][turn][0])) for number in living
            }
            await asyncio.sleep(0)
            pids.add(kill_one(host, turn % 2))
            while calls:
                number, call = calls.popitem()
                try:
                    step = await call
                except EnvFault:
                    faults += 1
                    # It may meet an earlier death, of a process that no call has used since.
                    assert faults <= len(pids), "one call pays for a death"
                    calls[number] = asyncio.create_task(host.step(states[number], turns[number][turn][0]))
                    continue
                assert trace_of(step) == turns[number][turn][1]
                states[number] = step.state
        # A process that was killed after its last reply of a turn is replaced at its next call.
        await asyncio.gather(*map(host.start, tasks[: host.count]), return_exceptions=True)
        assert host.replaced == len(pids)
    finally:
        await host.close()
    assert not [pid for pid in pids if is_running(pid)]


def kill_one(host: Workers, which: int) -> int:
    process = host._workers[which]._process
    assert process is not None
    os.kill(process.child.pid, signal.SIGKILL)
    return process.child.pid


@pytest.mark.parametrize("world", ["bfcl", "games", "search", "sql", "textworld"])
def test_a_killed_process_loses_no_other_episode(world: str) -> None:
    env = find_env(world)
    tasks = list(env.tasks("train", EPISODES, 0))
    asyncio.run(killed_in_the_middle(env, tasks, [planned(env, task) for task in tasks]))


def test_a_killed_process_takes_its_java_machine_along_and_no_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    need_world("scienceworld")
    env = Replay(env=ScienceWorld(topics=("find-living-thing",), memory_mb=256), keep=4)
    tasks = list(env.tasks("train", 4, 0))
    turns = [planned(env, task)[:2] for task in tasks]
    env.close()
    mark = begin_mark()
    before = descendants(mark)
    monkeypatch.setenv(VARIABLE, mark.value)
    asyncio.run(killed_in_the_middle(env, tasks, turns))
    assert not descendants(mark) - before, "no Java machine is left"
