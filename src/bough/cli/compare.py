"""`bough compare`: methods that are trained first, or run directories that are there."""

import os
import re
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from bough.cli.find import find_run, is_run_directory, refuse_arguments
from bough.compare import (
    Budget,
    Comparison,
    Grid,
    GridFolder,
    Reading,
    compare_runs,
    contestants,
    record,
    write_parquet,
)
from bough.compare.curve import METRICS
from bough.compare.grid import FILE
from bough.config import ConfigError, override
from bough.store import StoreError, check_output, write_json
from bough.store.atomic import write_bytes
from bough.train.check import check

CHANGE = re.compile(r"[A-Za-z_][\w.]*=")
"""The beginning of a field to change."""

RESULT = "comparison.json"
"""The file with the result, which the viewer shows."""


def compare_targets(
    targets: Sequence[str],
    changes: Sequence[str] = (),
    *,
    on: Sequence[str] = (),
    policy: str | None = None,
    seeds: int | None = None,
    reading: Reading | None = None,
    jobs: int | None = None,
    out: Path | None = None,
    parquet: Path | None = None,
    retry: bool = False,
    tell: Callable[[str], None] = print,
) -> Comparison:
    """Compare what the targets are, see `bough.compare`; `tell` gets a line when a run ends."""
    if parquet is not None:
        check_output(parquet)
    reading = reading or Reading()
    directories = _run_directories(targets)
    if directories is None:
        settings = _Settings(targets, changes, on, policy, seeds)
        folder = _folder(settings, reading, out, retry=retry)
        with _ends_at_sigterm():
            folder.train(_jobs(jobs), tell)
        runs, out = folder.runs, folder.path
        if reading.amount is None:
            reading = replace(reading, amount=folder.grid.amount(reading.budget))
    else:
        _Settings((), changes, on, policy, seeds).refuse()
        runs = contestants(directories)
    found = compare_runs(runs, reading)
    if out is not None:
        check_output(out / RESULT)
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / RESULT, record(found))
        write_bytes(out / "comparison.md", found.text.encode())
    if parquet is not None:
        write_parquet(found, parquet)
    return found


def split_changes(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The targets, and the fields to change, among arguments: `dapo(high=0.3)` is a target, `steps=50` a change."""
    changes = [each for each in arguments if CHANGE.match(each) and not Path(each).exists()]
    return [each for each in arguments if each not in changes], changes


def read_budget(text: str) -> Reading:
    """What is held equal: `tokens`, `tokens=200000`, `actions=5e4`, `seconds=600`.

    Raises:
        ConfigError: when it is none of these.
    """
    kind, _, amount = text.partition("=")
    try:
        return Reading(budget=cast("Budget", kind), amount=float(amount) if amount else None)
    except ValueError as error:
        raise ConfigError(f"--budget: got {text!r}; need {', '.join(METRICS)}, alone or as in tokens=200000") from error


@dataclass(frozen=True, slots=True)
class _Settings:
    """What the runs of a comparison are made of, as it was given."""

    methods: Sequence[str]
    changes: Sequence[str]
    on: Sequence[str]
    policy: str | None
    seeds: int | None

    def refuse(self) -> None:
        """Refuse what only runs that are to be trained can take."""
        given = [*self.changes, *(f"--on {each}" for each in self.on)]
        given += [f"--policy {self.policy}"] if self.policy else []
        given += [f"--seeds {self.seeds}"] if self.seeds is not None else []
        if given:
            raise ConfigError(f"got runs that are there, and {given[0]}; need methods to train with it, or nothing")

    def grid(self, stop: Sequence[str]) -> tuple[Grid, list[str]]:
        """The grid, when all its runs can begin, and the names of its worlds."""
        grid = Grid(
            methods=tuple(self.methods),
            worlds=tuple(self.on) or ("",),
            seeds=5 if self.seeds is None else self.seeds,
            changes=(*self.changes, *stop),
            policy=self.policy or "",
        )
        found: list[str] = []
        for world in grid.worlds:
            names = {self._check(method, world, grid.changes) for method in grid.methods}
            if len(names) > 1:
                raise ConfigError(f"got methods on {' and '.join(sorted(names))}; need one world for all: --on WORLD")
            found += names
        return grid, found

    def _check(self, method: str, world: str, changes: Sequence[str]) -> str:
        """Check a run; returns the name of its world."""
        run = find_run(method, world or None, self.policy)
        refuse_arguments(method, changes)
        run = override(run, changes)
        check(run)
        if not run.world.evaluation.every:
            raise ConfigError("evaluation.every: got 0; need 1 or more, as held-out results are compared")
        return run.world.name


def _run_directories(targets: Sequence[str]) -> list[Path] | None:
    """The run directories that the targets are, or those in folders of them; None where they are methods.

    Raises:
        StoreError: when a folder is not there, or has no run.
        ConfigError: when some are methods and some are not.
    """
    places = [Path(each).expanduser() for each in targets]
    if len(places) == 1 and (places[0] / FILE).is_file():
        return None
    for target, place in zip(targets, places, strict=True):
        if ("/" in target or target.startswith(".")) and ".py" not in target and not place.is_dir():
            raise StoreError(f"{target}: got a folder that does not exist; need run directories, or methods")
    inside = [
        [each] if is_run_directory(each) else sorted(filter(is_run_directory, each.glob("*/"))) for each in places
    ]
    for target, place, runs in zip(targets, places, inside, strict=True):
        if not runs and any(inside):
            raise ConfigError(f"{target}: got no run, and others are; need run directories or methods, of one kind")
        if not runs and place.is_dir():
            raise StoreError(f"{target}: got a folder without runs; need run directories, or methods such as grpo")
    return [run for runs in inside for run in runs] or None


def _folder(given: _Settings, reading: Reading, out: Path | None, *, retry: bool) -> GridFolder:
    """The folder of the grid: a new one, or one that is there, with what is added."""
    if not given.methods:
        raise ConfigError("got nothing to compare; need methods, or run directories")
    if not (Path(given.methods[0]) / FILE).is_file():
        stop = [] if reading.amount is None else [f"stop_{reading.budget}={reading.amount:.15g}"]
        grid, names = given.grid(stop)
        return GridFolder.open(out or Path("runs", "_".join(("compare", *names))), grid, retry=retry)
    path = Path(given.methods[0])
    replace(given, seeds=None).refuse()
    folder = GridFolder.open(path, retry=retry)
    if given.seeds is None:
        return folder
    return GridFolder.open(path, replace(folder.grid, seeds=given.seeds))


def _jobs(jobs: int | None) -> int:
    """How many runs at a time: one a core, or one with a GPU."""
    if jobs is None:
        from bough.lazy import torch

        return 1 if torch.cuda.is_available() else os.cpu_count() or 1
    if jobs < 1:
        raise ConfigError(f"--jobs: got {jobs}; need 1 or more")
    return jobs


@contextmanager
def _ends_at_sigterm() -> Generator[None]:
    """Within, SIGTERM acts as Ctrl-C: the runs write checkpoints before this process ends."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
