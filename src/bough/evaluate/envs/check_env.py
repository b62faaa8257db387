"""Checks an environment: determinism, branching, keys, oracle, splits, robustness, speed and leaks."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TypeAlias

from bough.env import Env, EnvFault, deviations_of
from bough.evaluate.envs.bad_calls import check_calls
from bough.evaluate.envs.branching import check_branching, check_pickling
from bough.evaluate.envs.contract import check_instructions, check_results
from bough.evaluate.envs.descendants import VARIABLE, ProcessMark, begin_mark, descendants
from bough.evaluate.envs.determinism import check_determinism, check_processes
from bough.evaluate.envs.draws import check_splits, check_tasks, draw_splits
from bough.evaluate.envs.garbage import check_garbage
from bough.evaluate.envs.keys import check_counters, check_keys
from bough.evaluate.envs.latency import check_latency
from bough.evaluate.envs.report import EnvCheck, EnvReport, Mark, failed, not_applicable
from bough.evaluate.envs.resources import check_close, check_files, check_memory, collecting_new_objects, play_episodes
from bough.evaluate.envs.solutions import check_oracle, check_oracle_elsewhere
from bough.evaluate.envs.timed import TimedEnv
from bough.evaluate.envs.trial import CheckSizes, Trial
from bough.evaluate.envs.walks import record_walks

Check: TypeAlias = Callable[[], EnvCheck]
OnCheck: TypeAlias = Callable[[EnvCheck], None]
"""Called with each check when it has ended."""

CHECKS: dict[str, Callable[[Trial], EnvCheck]] = {
    "results": check_results,
    "determinism": check_determinism,
    "fresh processes": check_processes,
    "branching": check_branching,
    "pickled states": check_pickling,
    "state keys": check_keys,
    "no step counter in keys": check_counters,
    "oracle": check_oracle,
    "oracle after random actions": check_oracle_elsewhere,
    "splits": check_splits,
    "garbage texts": check_garbage,
    "garbage calls": check_calls,
    "latency": check_latency,
}
"""The checks that work on random walks, in order."""

NAMES = ("instructions", "tasks", *CHECKS, "memory", "open files", "processes left")
"""All checks, in order."""


def check_env(
    env: Env,
    *,
    sizes: CheckSizes | None = None,
    only: Sequence[str] = (),
    name: str = "",
    turns: int | None = None,
    on_check: OnCheck | None = None,
) -> EnvReport:
    """Plays an environment, and checks it against the contract of `bough.env.Env`.

        report = check_env(Shop())
        assert report.passed, report.failures

    Args:
        env: The environment. It is closed at the end.
        sizes: How much is played; None for the defaults.
        only: The names of the checks, of `NAMES`; () for all. The check whose failure blocks them is added.
        name: The name in the report; "" for the class.
        turns: Turns of a path in training, `limits.turns` of a world, within which at least half of the oracle's
            solutions must fit; None for any number.
        on_check: Called with each check when it has ended.

    Returns:
        All checks, each with what was counted; a failed one with what was got, what is needed and what to do.

    Raises:
        ValueError: when `only` or the environment's `deviations` has a name that is no check.
        ImportError: when an environment of Bough lacks an extra.
    """
    if unknown := [each for each in only if each not in NAMES]:
        raise ValueError(f"check_env: got the check {unknown[0]!r}; need some of {', '.join(NAMES)}")
    designed = deviations_of(env)
    if unknown := [each for each in designed if each not in NAMES]:
        raise ValueError(f"{type(env).__name__}.deviations: got {unknown[0]!r}; need some of {', '.join(NAMES)}")
    begin = time.perf_counter()
    found: list[EnvCheck] = []
    for run in _marked_checks(env, sizes or CheckSizes(), only, turns):
        check = _by_design(run, designed[run.name]) if run.mark is Mark.FAIL and run.name in designed else run
        found.append(check)
        if on_check is not None:
            on_check(check)
    return EnvReport(
        env=name or type(env).__name__,
        branching=str(env.branching),
        checks=tuple(found),
        seconds=time.perf_counter() - begin,
    )


def _marked_checks(env: Env, sizes: CheckSizes, only: Sequence[str], turns: int | None) -> Iterator[EnvCheck]:
    """The checks, in an environment of processes that carry a mark."""
    mark = begin_mark()
    outer = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = mark.value
    try:
        with collecting_new_objects():
            for name, check, blocks in _checks(env, sizes, mark, turns):
                if blocks or not only or name in only:
                    yield _named(name, check)
    finally:
        os.environ.pop(VARIABLE)
        if outer is not None:
            os.environ[VARIABLE] = outer


def _checks(env: Env, sizes: CheckSizes, mark: ProcessMark, turns: int | None) -> Iterator[tuple[str, Check, bool]]:
    """The checks by name, in order, and whether each is the failure that blocks the others.

    The tasks and the walks are made on the way.
    """
    before = descendants(mark)
    timed = TimedEnv(env=env, deadline_s=sizes.call_s)
    yield "instructions", lambda: check_instructions(env), False
    try:
        tasks = draw_splits(timed, sizes.tasks, sizes.seed)
    except EnvFault as fault:
        found = _fault(fault)
        yield "tasks", lambda: found, True
        return
    yield "tasks", lambda: check_tasks(timed, tasks, sizes.seed), not any(tasks.values())
    every = tuple(task for own in tasks.values() for task in own)
    walks = record_walks(timed, every, count=sizes.walks, most=sizes.steps, seed=sizes.seed, seconds=sizes.seconds)
    trial = Trial(env=timed, sizes=sizes, tasks=tasks, walks=walks, turns=turns)
    for name, check in CHECKS.items():
        blocks = check is check_results
        blocked = not walks.walks and not blocks
        found = partial(not_applicable, "no walk without a fault") if blocked else partial(check, trial)
        yield name, found, blocks and not walks.walks
    samples = cache(lambda: play_episodes(trial, mark))
    yield "memory", lambda: check_memory(samples()), False
    yield "open files", lambda: check_files(samples()), False
    yield "processes left", lambda: check_close(trial, before, mark), False


def _named(name: str, check: Check) -> EnvCheck:
    """A check with its name; a fault of the environment during it is a failure."""
    try:
        return replace(check(), name=name)
    except EnvFault as fault:
        return replace(_fault(fault), name=name)


def _by_design(check: EnvCheck, reason: str) -> EnvCheck:
    """A failed check that the environment declares."""
    return replace(check, mark=Mark.BY_DESIGN, figure=f"{check.figure}; {reason}")


def _fault(fault: EnvFault) -> EnvCheck:
    return failed(
        "a fault",
        got=str(fault),
        need="calls that return",
        do="return valid=False or another result in place of an exception",
    )
