"""Checks that episodes in a row leave no memory, open file or process behind."""

import gc
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from statistics import median

from bough.env import Closable, EnvFault
from bough.evaluate.envs.actor import RandomActor, takes_calls
from bough.evaluate.envs.descendants import (
    ProcessMark,
    command_of,
    descendants,
    has_proc,
    open_files,
    resident_bytes,
)
from bough.evaluate.envs.report import EnvCheck, failed, not_applicable, passed
from bough.evaluate.envs.timed import TimedEnv, within
from bough.evaluate.envs.trial import Trial
from bough.tree import AgentAction, Outcome, Task
from bough.tree.seeds import derive
from bough.units import MIB

SMALL_MIB = 4.0
"""Growth of this process that is no leak, in MiB over half of the episodes."""
SMALL_CHILDREN_MIB = 48.0
"""The same for the processes that the environment started."""
CHILDREN_SHARE = 0.15
"""And as a share of their memory."""
SMALL_FILES = 3
"""Growth of open files and of threads that is no leak."""
SAMPLES = 24
"""Number of measurements over all episodes."""
LEAST = 8
"""Least number of episodes for a growth."""
PATIENCE_S = 10.0
"""Seconds after `close` within which processes must have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What episodes in a row left, measured after every few of them.

    Attributes:
        episodes: The numbers of the episodes.
        own_mib: Resident memory of this process.
        children_mib: Resident memory of the processes that the environment started.
        files: Open files of this process.
        threads: Threads of this process.
        fault: The fault that ended the episodes; "" without one.
    """

    episodes: list[int] = field(default_factory=list[int])
    own_mib: list[float] = field(default_factory=list[float])
    children_mib: list[float] = field(default_factory=list[float])
    files: list[float] = field(default_factory=list[float])
    threads: list[float] = field(default_factory=list[float])
    fault: list[str] = field(default_factory=list[str])


@contextmanager
def collecting_new_objects() -> Generator[None]:
    """The garbage collector looks at the objects made inside alone: a large program is not searched for each sample.

    Where the program has frozen its own objects before, all stay frozen, since only all can be unfrozen.
    """
    frozen = gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen:
            gc.unfreeze()


def play_episodes(trial: Trial, mark: ProcessMark) -> Samples:
    """Plays episodes in a row, and measures after every few. Few tasks are repeated, so that caches are full early."""
    samples = Samples()
    sizes = trial.sizes
    tasks = trial.all_tasks[:: max(1, len(trial.all_tasks) // max(1, min(8, sizes.episodes // 4)))]
    every = -(-sizes.episodes // SAMPLES)
    for number in within(sizes.seconds, range(sizes.episodes)):
        rng = Random(derive(sizes.seed, "episode", number))
        try:
            _play(trial.env, tasks[number % len(tasks)], trial.walks.known, rng, sizes.steps)
        except EnvFault as fault:
            samples.fault.append(f"episode {number}: {fault}")
            break
        samples.episodes.append(number)
        if number % every and number + 1 < sizes.episodes:
            continue
        gc.collect()
        samples.own_mib.append(resident_bytes() / MIB)
        samples.children_mib.append(sum(map(resident_bytes, descendants(mark))) / MIB)
        samples.files.append(float(open_files()))
        samples.threads.append(float(threading.active_count()))
    return samples


def _play(env: TimedEnv, task: Task, known: Sequence[AgentAction], rng: Random, most: int) -> None:
    """Plays an episode of random actions."""
    actor = RandomActor(calls=takes_calls(env.env), rng=rng, known=known)
    state = env.start(task)
    for _ in range(most):
        actor.observe(state)
        step = env.step(state, actor.act(state))
        state = step.state
        if step.outcome is not Outcome.OPEN:
            return


def growth(values: Sequence[float]) -> float:
    """Growth from the second to the last quarter, by medians: half of the episodes lie between them."""
    quarter = len(values) // 4
    return median(values[-quarter:]) - median(values[quarter : 2 * quarter])


def check_memory(samples: Samples) -> EnvCheck:
    """Resident memory stays flat over episodes in a row, here and in the processes that the environment started."""
    count = len(samples.episodes)
    if not has_proc() or (len(samples.own_mib) < LEAST and not samples.fault):
        return not_applicable(f"{count} episodes, too few" if has_proc() else "no /proc on this system")
    if samples.fault:
        return _broken(samples)
    own, children = growth(samples.own_mib), growth(samples.children_mib)
    most_children = max(SMALL_CHILDREN_MIB, CHILDREN_SHARE * max(samples.children_mib))
    beside = (
        f", its processes {samples.children_mib[-1]:.0f} MiB ({children:+.1f})" if any(samples.children_mib) else ""
    )
    figure = f"{count} episodes: {samples.own_mib[-1]:.0f} MiB ({own:+.1f} over half of them){beside}"
    numbers = {
        "episodes": float(count),
        "memory_mib": samples.own_mib[-1],
        "growth_mib": own,
        "growth_kib_per_episode": 1024 * own / (count / 2),
        "children_mib": samples.children_mib[-1],
        "children_growth_mib": children,
    }
    if own <= SMALL_MIB and children <= most_children:
        return passed(figure, **numbers)
    return failed(
        figure,
        got=f"memory that grew by {own:.1f} MiB here and {children:.1f} MiB in processes over {count // 2} episodes",
        need=f"growth below {SMALL_MIB:g} MiB here and {most_children:.0f} MiB in processes",
        do="bound caches (lru_cache(maxsize=...)), and keep nothing of an episode outside of its states",
        **numbers,
    )


def check_files(samples: Samples) -> EnvCheck:
    """The numbers of open files and of threads stay flat over episodes in a row."""
    count = len(samples.episodes)
    if not has_proc() or (len(samples.own_mib) < LEAST and not samples.fault):
        return not_applicable(f"{count} episodes, too few" if has_proc() else "no /proc on this system")
    if samples.fault:
        return _broken(samples)
    files, threads = growth(samples.files), growth(samples.threads)
    figure = f"{count} episodes: {samples.files[-1]:.0f} files ({files:+.0f}), {samples.threads[-1]:.0f} threads"
    numbers = {"files": samples.files[-1], "files_growth": files, "threads_growth": threads}
    if max(files, threads) <= SMALL_FILES:
        return passed(figure, **numbers)
    return failed(
        figure,
        got=f"{files:.0f} more open files and {threads:.0f} more threads after {count // 2} episodes",
        need=f"growth of at most {SMALL_FILES}",
        do="close files, connections and threads at the end of a step",
        **numbers,
    )


def _broken(samples: Samples) -> EnvCheck:
    return failed(
        f"{len(samples.episodes)} episodes",
        got=samples.fault[0],
        need="episodes in a row without a fault",
        do="see the check of results",
    )


def check_close(trial: Trial, before: set[int], mark: ProcessMark) -> EnvCheck:
    """After `close`, called twice, no process is left; a later call opens the environment again.

    Args:
        trial: The trial.
        before: Processes that ran before the environment was used.
        mark: The mark of the environment's processes.
    """
    env = trial.env.env
    during = descendants(mark) - before
    if isinstance(env, Closable):
        for _ in range(2):
            env.close()
        trial.env.start(trial.all_tasks[0])
        env.close()
    gc.collect()
    left = descendants(mark) - before
    end = time.monotonic() + PATIENCE_S
    while left and time.monotonic() < end:
        time.sleep(0.05)
        left = descendants(mark) - before
    if left:
        names = sorted({command_of(pid)[:60] for pid in left})
        return failed(
            f"{len(left)} left of {len(during)} processes",
            got=f"{len(left)} processes after close(): {', '.join(names[:3])}",
            need="no process",
            do="end all processes, with their children, in close()",
            left=len(left),
        )
    if not has_proc():
        return not_applicable("no /proc on this system")
    return passed(f"0 left of {len(during)} processes", left=0, processes=len(during))
