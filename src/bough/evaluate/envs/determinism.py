"""Checks that the same task and actions give the same episode, here and in fresh processes."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from bough.env import Closable, Env, EnvFault, Split
from bough.evaluate.envs.comparison import difference, state_record, step_record
from bough.evaluate.envs.report import EnvCheck, failed, passed
from bough.evaluate.envs.timed import TimedEnv, within
from bough.evaluate.envs.trial import Trial
from bough.evaluate.envs.walks import Walk
from bough.tree import AgentAction, Task
from bough.usercode.load import loaded_files, unpickle
from bough.usercode.origin import describe

START = """
import json, sys
sys.path[:] = json.loads(sys.argv[3])
from bough.evaluate.envs.determinism import replay_in_child
replay_in_child(sys.argv[1], sys.argv[2])
"""
REMEDY = "draw from task.seed and task.data alone; use no time, no global random state, no order of a set"
Records = list[dict[str, object]]


def check_determinism(trial: Trial) -> EnvCheck:
    """The same task and actions give the same observations, keys, rewards and outcomes in this process."""
    done = steps = 0
    for walk in within(trial.sizes.seconds, trial.walks.walks):
        found = _replay(trial.env, walk.task, walk.actions)
        done, steps = done + 1, steps + len(walk.actions)
        if wrong := _mismatch(walk, found):
            return failed(f"{done} walks", got=wrong, need="the same episode twice", do=REMEDY)
    return passed(f"{done} walks, {steps} steps", walks=done, steps=steps)


def check_processes(trial: Trial) -> EnvCheck:
    """The same tasks and episodes in fresh processes, each with another PYTHONHASHSEED."""
    count = trial.sizes.processes
    draws: list[tuple[Split, int, int]] = [(split, len(own), trial.sizes.seed) for split, own in trial.tasks.items()]
    walks = trial.walks.walks
    seconds = trial.sizes.seconds
    try:
        env = pickle.dumps(trial.env.env)
    except Exception as error:
        return failed(
            "0 processes",
            got=f"an environment that cannot be pickled: {describe(error)}",
            need="an environment that travels to worker processes",
            do="keep fields that can be pickled, and open files, processes and connections on first use",
        )
    played = [(walk.task, walk.actions) for walk in walks]
    given = {"env": env, "files": loaded_files(), "draws": draws, "walks": played}
    payload = pickle.dumps({**given, "seconds": seconds, "call_s": trial.sizes.call_s})
    found = _in_children(payload, count, deadline_s=2 * seconds + 120)
    done = min(len(each["walks"]) for each in found)
    figure = f"{count} processes, {done} walks each"
    for number, answer in enumerate(found, start=1):
        if wrong := _other_tasks(trial, draws, answer["tasks"]):
            return failed(figure, got=f"{wrong} in another process", need="the same tasks", do=REMEDY)
        for walk, records in zip(walks, answer["walks"], strict=False):
            if wrong := _mismatch(walk, records):
                where = f"in a process with PYTHONHASHSEED={number}"
                return failed(figure, got=f"{wrong} {where}", need="the same episode", do=REMEDY)
    return passed(figure, processes=count, walks=done)


def _other_tasks(trial: Trial, draws: Sequence[tuple[Split, int, int]], found: Sequence[Records]) -> str:
    """The first task that differs in another process; "" when all are equal."""
    for (split, count, seed), theirs in zip(draws, found, strict=True):
        mine = cast("Records", json.loads(json.dumps([task.record() for task in trial.tasks[split]])))
        for at, (one, two) in enumerate(zip(mine, theirs, strict=True)):
            if wrong := difference(one, two):
                return f"tasks({split!r}, {count}, {seed})[{at}]: {wrong}"
    return ""


def replay_in_child(payload: str, result: str) -> None:
    """In a fresh process: plays the walks of a file, and writes their records to another."""
    given: dict[str, Any] = pickle.loads(Path(payload).read_bytes())
    answer: dict[str, Any] = {}
    try:
        env = TimedEnv(env=cast("Env", unpickle(given["env"], given["files"])), deadline_s=given["call_s"])
        answer["tasks"] = [[task.record() for task in env.tasks(*draw)] for draw in given["draws"]]
        answer["walks"] = [_replay(env, task, actions) for task, actions in within(given["seconds"], given["walks"])]
        if isinstance(env.env, Closable):
            env.env.close()
    except Exception as error:  # its text is the result
        answer["error"] = describe(error)
    Path(result).write_text(json.dumps(answer, default=str), encoding="utf-8")


def _replay(env: TimedEnv, task: Task, actions: Sequence[AgentAction]) -> Records:
    """The records of an episode, up to its last action or an exception."""
    state = env.start(task)
    records = [state_record(state)]
    for action in actions:
        step = env.step(state, action)
        records.append(step_record(step))
        state = step.state
    return records


def _mismatch(walk: Walk, found: Records) -> str:
    """The first step at which a walk differs from its replay; "" when they are equal."""
    mine = cast("Records", json.loads(json.dumps(walk.records, default=str)))
    theirs = cast("Records", json.loads(json.dumps(found, default=str)))
    for number, (one, two) in enumerate(zip(mine, theirs, strict=False)):
        if wrong := difference(one, two):
            return f"task {walk.task.id}, step {number}: {wrong}"
    return ""


def _in_children(payload: bytes, count: int, *, deadline_s: float) -> list[dict[str, Any]]:
    """The answers of fresh processes that run side by side.

    Raises:
        EnvFault: when a process fails or is late.
    """
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "payload"
        given.write_bytes(payload)
        results = [Path(folder) / f"result{number}" for number in range(1, count + 1)]
        children = [_spawn(given, result, hash_seed) for hash_seed, result in enumerate(results, start=1)]
        end = time.monotonic() + deadline_s
        try:
            for child, result in zip(children, results, strict=True):
                child.wait(timeout=max(0.1, end - time.monotonic()))
                if not result.is_file():
                    lines = result.with_suffix(".err").read_text(errors="replace").strip()[-400:]
                    raise EnvFault(f"a fresh process ended with status {child.returncode}: {lines}")
        except subprocess.TimeoutExpired:
            raise EnvFault(f"a fresh process had no result within {deadline_s:g} s") from None
        finally:
            for child in children:
                _end_group(child)
        answers = [cast("dict[str, Any]", json.loads(each.read_text(encoding="utf-8"))) for each in results]
    if errors := [str(answer["error"]) for answer in answers if "error" in answer]:
        raise EnvFault(f"a fresh process raised {errors[0]}")
    return answers


def _spawn(given: Path, result: Path, hash_seed: int) -> subprocess.Popen[bytes]:
    """Starts a process whose string hashes have a seed of their own."""
    command = [sys.executable, "-c", START, str(given), str(result), json.dumps(sys.path)]
    with result.with_suffix(".err").open("wb") as errors:
        return subprocess.Popen(
            command,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            start_new_session=True,
        )


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Kills a child and its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
