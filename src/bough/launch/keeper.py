"""Supervises a command: limits its memory, and kills all processes that it leaves behind.

Runs as a script and imports nothing of Bough: `python keeper.py MEMORY_BYTES GRACE_S COMMAND ARGUMENT ...`.
"""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from functools import partial

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
END_S = 5.0
"""Longest wait for the end of killed processes, seconds; a process of another user can't be killed."""


def kept_command(words: Sequence[str], *, memory_bytes: int = 0, grace_s: float = 0.0) -> tuple[str, ...]:
    """Returns the command line that runs another command under `keep`.

    Args:
        words: The other command and its arguments.
        memory_bytes: Most bytes of address space of each process; 0 for no limit.
        grace_s: Seconds between SIGTERM and SIGKILL.
    """
    return (sys.executable, "-I", "-S", __file__, str(memory_bytes), str(grace_s), *words)


def keep(work: Callable[[], None], memory_bytes: int, grace_s: float = 0.0) -> int:
    """Run a function in a child, then end all processes below this one; returns the child's exit status.

    The child leads a session of its own. Its daemons become children of this process, where the system can (Linux);
    elsewhere the child's process group is ended. SIGTERM, which the end of the parent sends too, ends them all.

    Args:
        work: Called in the child; does not return.
        memory_bytes: Most bytes of address space of each process; 0 for no limit.
        grace_s: Seconds that the child has after SIGTERM.
    """
    call_prctl(PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.getpid()
    # Blocked, SIGTERM waits until there is a child that it can end.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    call_prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        call_prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper:
            if memory_bytes:
                resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
            work()
        os._exit(1)
    signal.signal(signal.SIGALRM, partial(_end, child, 0.0))
    signal.signal(signal.SIGTERM, partial(_end, child, grace_s))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    _kill(child)
    end_children()
    return status


def _end(pid: int, grace_s: float, number: int, frame: object) -> None:
    """End a process, as a handler of a signal."""
    del number, frame
    if grace_s:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, grace_s)
    else:
        _kill(pid)


def end_children(but: Container[int] = ()) -> None:
    """Kill the children of this process and the orphans it inherits from them, for at most `END_S`.

    Args:
        but: Process ids that are spared.
    """
    deadline = time.monotonic() + END_S
    while (left := [pid for pid in _children() if pid not in but]) and time.monotonic() < deadline:
        for pid in left:
            _kill(pid)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.001)


def call_prctl(option: int, value: int) -> None:
    """Set an option of this process, on Linux."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _kill(pid: int) -> None:
    """Kill a process, and the group that it leads or led."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _children() -> list[int]:
    """The children of this process, ended ones too; none where the system has no subreapers."""
    if sys.platform != "linux":
        return []
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _parent(pid) == os.getpid()]


def _parent(pid: int) -> int:
    """The parent of a process; 0 when the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def main(memory_bytes: str, grace_s: str, *words: str) -> None:
    """Run a command under `keep`, and end with its exit status or signal."""

    def command() -> None:
        try:
            os.execvp(words[0], list(words))
        except OSError as error:
            print(
                f"cannot run {words[0]!r}: {error.strerror}; need a program on the PATH, or a path to one",
                file=sys.stderr,
                flush=True,
            )

    end_like(keep(command, int(memory_bytes), float(grace_s)))


def end_like(status: int) -> None:
    """End this process with an exit status, or by a signal for a negative one."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
