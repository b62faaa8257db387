"""A memory cgroup around a program: unlike the limit of a process it counts the kernel's memory for the program."""

import os
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path

from bough.env.sandbox.result import SandboxError

ROOT = Path("/sys/fs/cgroup")
REMOVED_S = 2.0
"""Maximum seconds until a group without processes can be removed."""

_NUMBERS = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """The files of a version of cgroups: the limit, that of memory and swap together, and the count of kills."""

    limit: str
    swap: str
    events: str


FIRST = _Version(limit="memory.limit_in_bytes", swap="memory.memsw.limit_in_bytes", events="memory.oom_control")
SECOND = _Version(limit="memory.max", swap="", events="memory.events")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGroup:
    """A group of this machine.

    Attributes:
        folder: Its folder.
        events: The file with the count of processes that the kernel killed at the limit.
    """

    folder: Path
    events: Path

    def add(self, process: int) -> None:
        """Moves a process into the group; what it starts from then on is in it too."""
        (self.folder / "cgroup.procs").write_text(str(process))

    @property
    def killed(self) -> bool:
        """Whether the kernel killed a process at the limit."""
        lines = (line.split() for line in self.events.read_text().splitlines())
        return any(line[0] == "oom_kill" and line[1] != "0" for line in lines)


@contextmanager
def memory_group(most_bytes: int) -> Generator[MemoryGroup | None]:
    """A new group with a limit; None on a machine that lets this process make none.

    Raises:
        SandboxError: when it could make groups before, and cannot make this one.
    """
    place = _place()
    if place is None:
        yield None
        return
    try:
        group = _group(*place, most_bytes)
        entered = group.__enter__()
    except OSError as error:
        raise SandboxError(f"sandbox: got no memory cgroup below {place[0]} ({error}); remove empty ones") from error
    try:
        yield entered
    finally:
        group.__exit__(None, None, None)


@contextmanager
def _group(parent: Path, version: _Version, most_bytes: int) -> Generator[MemoryGroup]:
    folder = parent / f"bough-{os.getpid()}-{next(_NUMBERS)}"
    folder.mkdir()
    try:
        (folder / version.limit).write_text(str(most_bytes))
        with suppress(OSError):  # the kernel may not count swap
            (folder / (version.swap or "memory.swap.max")).write_text(str(most_bytes) if version.swap else "0")
        yield MemoryGroup(folder=folder, events=folder / version.events)
    finally:
        _remove(folder)


@lru_cache(maxsize=1)
def _place() -> tuple[Path, _Version] | None:
    """Where this process can make groups that a process can enter; None for nowhere."""
    for parent, version in _candidates():
        with (
            suppress(OSError),
            _group(parent, version, 1 << 30) as group,
            subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as waiting,
        ):
            try:
                group.add(waiting.pid)
                return parent, version
            finally:
                waiting.kill()
    return None


def _candidates() -> Iterator[tuple[Path, _Version]]:
    """The group of this process, then the one above: in version 2 only a group without processes has limited groups."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                yield ROOT / "memory" / path.lstrip("/"), FIRST
            elif number == "0":
                own = ROOT / path.lstrip("/")
                yield own, SECOND
                if own != ROOT:
                    yield own.parent, SECOND


def _remove(folder: Path) -> None:
    end = time.monotonic() + REMOVED_S
    while True:
        try:
            folder.rmdir()
            return
        except OSError:  # a killed process is still ending
            if time.monotonic() > end:
                return
            time.sleep(0.01)
