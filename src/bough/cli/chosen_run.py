"""The run that `bough train` starts: from a method, a recipe, a run directory or a file of settings."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bough.cli.find import default_world, find_policy, find_run, is_run_directory, refuse_arguments
from bough.cli.functions import names
from bough.config import ConfigError, override
from bough.config.read_toml import from_toml, read_tables
from bough.store import RunDirectory
from bough.train import Run, load_run
from bough.train.like import like
from bough.train.quick import quick as shrink

CHANGE = re.compile(r"[\w.]+=")
"""The beginning of a change, which no method has."""


def choose(method: str | None, changes: Sequence[str], **options: Any) -> "Choice":
    """What the arguments name; paths are absolute, as the run may start in another folder.

    Args:
        method: The first argument, which may be a change where a file has the settings.
        changes: The others.
        options: The other fields of `Choice`.
    """
    if method is not None and CHANGE.match(method):
        method, changes = None, [method, *changes]
    if method is not None and method not in names("methods", "recipes"):
        path = Path(method).expanduser()
        method = str(path.absolute()) if is_run_directory(path) else method
    policy, config = options.pop("policy"), options.pop("config")
    if policy is not None and (path := Path(policy).expanduser()).exists():
        policy = str(path.absolute())
    config = None if config is None else config.expanduser().absolute()
    return Choice(method=method, changes=changes, policy=policy, config=config, **options)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the arguments of `bough train` name.

    Attributes:
        method: A method, a recipe or a run directory; None with a file of settings alone.
        changes: The fields to change, in order.
        on: The world of a method.
        policy: The policy in place of the world's or the run's.
        config: The TOML file of settings.
        library: The library whose defaults come first.
        quick: Whether the run is shrunk before `changes`.
        out: The folder of run directories, absolute.
    """

    method: str | None
    changes: Sequence[str]
    on: str | None
    policy: str | None
    config: Path | None
    library: str | None
    quick: bool
    out: Path

    @property
    def directory(self) -> Path | None:
        """The run directory that `method` names."""
        path = None if self.method is None else Path(self.method)
        return path if path is not None and path.is_absolute() and is_run_directory(path) else None

    def folder(self) -> AbstractContextManager[object]:
        """The folder in which the run starts: that in which the run started whose settings it takes."""
        return nullcontext() if self.directory is None else RunDirectory.open(self.directory).in_its_folder()

    @property
    def world(self) -> str:
        """The world that the run has by default; "" where one is named, or the run has its own."""
        return "" if self.on is not None or self.directory is not None else default_world(self.method)

    def run(self) -> Run:
        """The resolved run.

        Raises:
            ConfigError: when an argument names nothing, or the arguments do not fit together.
        """
        run = self._whole(None if self.config is None else read_tables(self.config, "--config"))
        if self.quick:
            run = shrink(run)
        refuse_arguments(None if self.directory else self.method, self.changes)
        made = override(run, self.changes)
        return self._named(made) if made.name == run.name else made

    def _whole(self, tables: Mapping[str, object] | None) -> Run:
        if self.method is None and tables is None:
            raise ConfigError("got no METHOD; need a method (`bough list methods`), a run directory, or --config FILE")
        if self.method is None or self.directory is not None:
            what = self.method or f"--config {self.config}"
            if self.on is not None:
                raise ConfigError(f"--on {self.on}: {what} has a world of its own; need a method, or no --on")
            run = (
                from_toml(tables or {}, Run) if self.directory is None else load_run(RunDirectory.open(self.directory))
            )
            run = run if self.policy is None else run.replace(world=find_policy(self.policy)(run.world))
        else:
            run = find_run(self.method, self.on, self.policy)
        run = like(run, self.library)
        return run if self.method is None or tables is None else from_toml(tables, Run, run)

    def _named(self, run: Run) -> Run:
        """The run under a free name, where the name is that of another run: of `directory`, or of the whole one."""
        if self.directory is None and not self.quick:
            return run
        name = f"{run.name}_quick" if self.quick else run.name
        number = 1
        while (self.out / _numbered(name, number)).exists():
            number += 1
        return run.replace(name=_numbered(name, number))


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}_{number}"
