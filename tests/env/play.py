"""What several tests of this room do: walk, compare, look at processes."""

import random
from pathlib import Path

from bough.env import Env, Host, State, Step
from bough.tree import Outcome, Task
from bough.usercode import load_module

worlds = load_module(Path(__file__).with_name("worlds.py"))

Seen = tuple[str, str, float, Outcome, bool, bool]


def seen(step: Step) -> Seen:
    """All of a step that does not depend on where and how it was made."""
    return (step.state.observation, step.state.key, step.reward, step.outcome, step.valid, step.success)


def actions_of(seed: int, count: int) -> list[str]:
    return random.Random(seed).choices(["left", "down", "right", "up", "hop"], k=count)


def walk(env: Env, task: Task, actions: list[str]) -> list[Seen]:
    state, trace = env.start(task), []
    for action in actions:
        step = env.step(state, action)
        trace.append(seen(step))
        if step.outcome != Outcome.OPEN:
            break
        state = step.state
    return trace


def follow(env: Env, state: State) -> Step:
    """Follow the oracle to the end, planning anew at every step."""
    while True:
        way = env.plan(state)  # type: ignore[attr-defined]
        assert way, "the oracle gave up"
        step = env.step(state, way[0])
        if step.outcome != Outcome.OPEN:
            return step
        state = step.state


def flood(env: Env, state: State, depth: int) -> int | None:
    """Steps to the nearest success, by flooding all situations with the environment's own steps."""
    seen_keys, front = {state.key}, [state]
    for steps in range(1, depth + 1):
        following: list[State] = []
        for here in front:
            for action in ("left", "down", "right", "up"):
                step = env.step(here, action)
                if step.success:
                    return steps
                if step.outcome == Outcome.OPEN and step.state.key not in seen_keys:
                    seen_keys.add(step.state.key)
                    following.append(step.state)
        front = following
    return None


async def walk_on(host: Host, task: Task, actions: list[str]) -> list[Seen]:
    state, trace = await host.start(task), []
    for action in actions:
        step = await host.step(state, action)
        trace.append(seen(step))
        if step.outcome != Outcome.OPEN:
            break
        state = step.state
    return trace


def is_running(pid: int) -> bool:
    """Whether any thread of a process is; the first one may be gone while another still holds the files."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return len(threads) > 1 or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
