"""Memory, open files and child processes, from /proc; without /proc there are none."""

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
VARIABLE = "BOUGH_CHECK_ENV"
"""An environment variable that marks the processes an environment starts, also those without a parent."""
TRACKERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "bough.launch.bounded")
"""Processes that Python and Bough keep until the end."""
PARENT, STARTED = 1, 19
"""Fields of /proc/PID/stat after the name: the parent, and the start in ticks since the boot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMark:
    """Marks the processes that start below this one.

    Attributes:
        value: The value of `VARIABLE` in their environment.
        since: The time of the mark, in ticks since the boot.
    """

    value: str
    since: int


def has_proc() -> bool:
    """Whether processes can be read."""
    return (PROC / "self" / "status").is_file()


def resident_bytes(pid: int | str = "self") -> int:
    """Resident memory of a process; 0 when it has ended."""
    lines = (_read(pid, "status") or b"").decode(errors="replace").splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def open_files() -> int:
    """Number of open file descriptors of this process."""
    try:
        return len(os.listdir(PROC / "self" / "fd"))
    except OSError:
        return 0


def begin_mark() -> ProcessMark:
    """A mark for the processes that start from now on."""
    uptime = (_read("", "uptime") or b"0").split()[0]
    # A second earlier: both numbers are rounded.
    return ProcessMark(value=uuid.uuid4().hex, since=int((float(uptime) - 1) * os.sysconf("SC_CLK_TCK")))


def descendants(mark: ProcessMark) -> set[int]:
    """The processes below this one, and others with the mark; zombies and Python's own trackers are left out."""
    stats = {pid: stat for pid in _pids() if (stat := _stat(pid)) and stat[0] not in (b"Z", b"X")}
    own = os.getpid()
    carried = f"{VARIABLE}={mark.value}".encode()
    found = {
        pid
        for pid, stat in stats.items()
        if int(stat[STARTED]) >= mark.since and carried in (_read(pid, "environ") or b"").split(b"\0")
    }
    for pid in stats:
        above = pid
        while above in stats and above != own:
            above = int(stats[above][PARENT])
        if above == own:
            found.add(pid)
    found.discard(own)
    return {pid for pid in found if not any(each in command_of(pid) for each in TRACKERS)}


def command_of(pid: int) -> str:
    """The command line of a process; "" when it has ended."""
    return (_read(pid, "cmdline") or b"").replace(b"\0", b" ").decode(errors="replace").strip()


def _pids() -> Iterator[int]:
    if PROC.is_dir():
        yield from (int(name) for name in os.listdir(PROC) if name.isdigit())


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat after the name; [] when the process has ended."""
    return (_read(pid, "stat") or b"").rpartition(b")")[2].split()


def _read(pid: int | str, name: str) -> bytes | None:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return None
