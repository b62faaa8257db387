"""Memory, open files and child processes, from /proc; without /proc there are none."""

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
MARK = "BOUGH_CHECK_ENV"
"""An environment variable that marks the processes an environment starts, also those without a parent."""
TRACKERS = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")
"""Processes that Python keeps until its end."""


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


def descendants(mark: str) -> set[int]:
    """The processes below this one, and those that carry a value of the variable `MARK`; zombies are none."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    for pid in _pids():
        fields = (_read(pid, "stat") or b"").rpartition(b")")[2].split()
        if len(fields) < 2 or fields[0] in (b"Z", b"X"):
            continue
        parents[pid] = int(fields[1])
        if f"{MARK}={mark}".encode() in (_read(pid, "environ") or b"").split(b"\0"):
            found.add(pid)
    own = os.getpid()
    for pid in parents:
        above = pid
        while above in parents and above != own:
            above = parents[above]
        if above == own and pid != own:
            found.add(pid)
    found.discard(own)
    return {pid for pid in found if not any(each in command_of(pid).encode() for each in TRACKERS)}


def command_of(pid: int) -> str:
    """The command line of a process; "" when it has ended."""
    return (_read(pid, "cmdline") or b"").replace(b"\0", b" ").decode(errors="replace").strip()


def _pids() -> Iterator[int]:
    if PROC.is_dir():
        yield from (int(name) for name in os.listdir(PROC) if name.isdigit())


def _read(pid: int | str, name: str) -> bytes | None:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return None
