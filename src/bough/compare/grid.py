"""The runs that a comparison needs, trained in processes of their own; what is there already is read, not repeated."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, cast

from bough.compare.contestants import Contestant, contestants
from bough.compare.curve import Budget
from bough.compare.processes import Ended, run_all
from bough.config import ConfigError
from bough.store import StoreError, write_json
from bough.store.atomic import read_stored
from bough.store.run_status import run_status
from bough.units import number_of

FILE = "compare.json"
"""What a folder of runs is made of: methods, worlds, seeds, changes, and which runs failed."""

MOST_NAME = 120
"""Longest name of a run's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Every method on every world with every seed, all with the same changes.

    Attributes:
        methods: Methods, as for `bough train`.
        worlds: Worlds, as for `--on`; "" for that of the methods, which is one.
        seeds: How many seeds, from 0.
        changes: Fields that all runs change.
        policy: As for `--policy`; "" for that of the world.
    """

    methods: tuple[str, ...]
    worlds: tuple[str, ...]
    seeds: int
    changes: tuple[str, ...] = ()
    policy: str = ""

    def __post_init__(self) -> None:
        for name, values in (("methods", self.methods), ("worlds", self.worlds)):
            if not values or len({*values}) < len(values):
                raise ConfigError(f"{name}: got {', '.join(values) or 'none'}; need one or more, each once")
        if self.seeds < 1:
            raise ConfigError(f"seeds: got {self.seeds}; need 1 or more")
        if refused := [each for each in self.changes if each.partition("=")[0] in ("seed", "name")]:
            raise ConfigError(f"got {', '.join(refused)}; need other fields: each run has a seed and a name of its own")

    def amount(self, budget: Budget) -> float | None:
        """How much of a budget ends the runs; None where it does not."""
        stops = [each.partition("=")[2] for each in self.changes if each.startswith(f"stop_{budget}=")]
        return float(stops[-1]) if stops else None

    def runs(self, out: Path) -> list[Contestant]:
        """All runs of it, seed by seed, in folders below `out`."""
        names = _names([*self.methods]), _names([*self.worlds])
        return [
            Contestant(
                method=method,
                world=world,
                seed=seed,
                directory=out / "_".join(filter(None, (names[0][method], names[1][world], f"seed{seed}"))),
            )
            for seed, world, method in product(range(self.seeds), self.worlds, self.methods)
        ]

    def command(self, run: Contestant) -> list[str]:
        """The arguments of `bough` that begin a run, or continue it."""
        if (run.directory / "config.json").is_file():
            return ["resume", str(run.directory)]
        world = [] if self.worlds == ("",) else [f"--on={run.world}"]
        policy = [f"--policy={self.policy}"] if self.policy else []
        own = [f"seed={run.seed}", f"name={run.directory.name}"]
        return ["train", run.method, *self.changes, *own, *world, *policy, f"--out={run.directory.parent}"]


@dataclass(slots=True)
class GridFolder:
    """A folder with the runs of a grid.

    Attributes:
        path: The folder.
        grid: What it is made of.
        failed: By the name of a run, why it failed.
    """

    path: Path
    grid: Grid
    failed: dict[str, str]

    @classmethod
    def open(cls, path: Path, grid: Grid | None = None, *, retry: bool = False) -> "GridFolder":
        """The folder, with what it had and what a grid adds: methods, worlds, seeds.

        Args:
            path: The folder; made when it is new.
            grid: None for what the folder has.
            retry: Whether failed runs are tried again.

        Raises:
            ConfigError: when the folder's runs have other changes or another policy.
            StoreError: when there is no grid in the folder and none is given, or its file is damaged.
        """
        before, failed = _stored(path / FILE) if (path / FILE).is_file() else (None, {})
        if before is None and grid is None:
            raise StoreError(f"{path}: got no {FILE}; need methods to compare, or a folder that `bough compare` made")
        if before is not None and grid is not None:
            for name in ("changes", "policy"):
                was, now = getattr(before, name), getattr(grid, name)
                if was != now:
                    raise ConfigError(
                        f"{path}: got runs with {name} {_shown(was)}, and now {_shown(now)}; need the same for all "
                        "runs: give them again, or another --out"
                    )
            grid = replace(
                before,
                methods=tuple(dict.fromkeys((*before.methods, *grid.methods))),
                worlds=tuple(dict.fromkeys((*before.worlds, *grid.worlds))),
                seeds=max(before.seeds, grid.seeds),
            )
        found = cls(path, cast("Grid", grid or before), {} if retry else failed)
        path.mkdir(parents=True, exist_ok=True)
        found.write()
        return found

    def write(self) -> None:
        """Write what the folder is made of."""
        about = {
            "methods": list(self.grid.methods),
            "worlds": list(self.grid.worlds),
            "seeds": self.grid.seeds,
            "changes": list(self.grid.changes),
            "policy": self.grid.policy,
        }
        write_json(self.path / FILE, {**about, "failed": self.failed})

    @property
    def runs(self) -> list[Contestant]:
        """All runs; failed ones have the reason."""
        found = [replace(each, failure=self.failed.get(each.directory.name, "")) for each in self.grid.runs(self.path)]
        if self.grid.worlds != ("",):
            return found
        known = [each.directory for each in found if (each.directory / "config.json").is_file()]
        world = contestants(known[:1])[0].world if known else ""
        return [replace(each, world=world) for each in found]

    def train(self, jobs: int, tell: Callable[[str], None]) -> None:
        """Train what is neither done nor failed, some runs at a time.

        Args:
            jobs: How many at a time; the cores are divided among them.
            tell: Called with a line when a run ends.

        Raises:
            KeyboardInterrupt: on Ctrl-C, when all runs have written a checkpoint.
        """
        todo = {each.directory.name: each for each in self.runs if not each.failure and not _is_done(each.directory)}
        for each in todo.values():
            if each.directory.is_dir() and not (each.directory / "config.json").is_file():
                shutil.rmtree(each.directory)  # it was killed before it had settings
        if todo:
            tell(f"{number_of(len(todo), 'run')} to train, {min(jobs, len(todo))} at a time, in {self.path}")
        threads = max(1, (os.cpu_count() or 1) // jobs)
        left = len(todo)
        commands = {name: [sys.executable, "-P", "-m", "bough", *self.grid.command(run)] for name, run in todo.items()}
        for ended in run_all(commands, jobs, self.path / "logs", {"OMP_NUM_THREADS": str(threads)}):
            left -= 1
            if ended.status:
                self.failed[ended.name] = ended.reason
                self.write()
            tell(_line(ended, todo[ended.name], left))


def _is_done(directory: Path) -> bool:
    return (directory / "config.json").is_file() and run_status(directory).state == "done"


def _line(ended: Ended, run: Contestant, left: int) -> str:
    about = f"{run.directory.name} ({run.method})"
    how = f"failed: {ended.reason}" if ended.status else "done"
    return f"{about}: {how} after {ended.seconds / 60:.1f} minutes; {number_of(left, 'run')} left"


def _stored(file: Path) -> tuple[Grid, dict[str, str]]:
    found: Mapping[str, Any] = read_stored(file)
    try:
        several = {name: tuple(map(str, found[name])) for name in ("methods", "worlds", "changes")}
        failed = {str(name): str(reason) for name, reason in found["failed"].items()}
        return Grid(**several, seeds=int(found["seeds"]), policy=str(found["policy"])), failed
    except (LookupError, TypeError, AttributeError) as error:
        raise StoreError(f"{file}: got no grid of runs ({error}); need the file as `bough compare` wrote it") from error


def _shown(value: object) -> str:
    several = cast("Sequence[str]", value) if isinstance(value, tuple) else [str(value)]
    return " ".join(several) or "none"


def _names(texts: Sequence[str]) -> Mapping[str, str]:
    """A name for a folder for each text, all different."""
    found: dict[str, str] = {}
    for text in texts:
        name = re.sub(r"[^\w.-]+", "_", Path(text).name if text.endswith(".py") else text).strip("_.")[:MOST_NAME]
        found[text] = next(each for each in _numbered(name) if each not in found.values())
    return found


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}~{number}"
        number += 1
