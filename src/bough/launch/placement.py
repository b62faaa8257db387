"""Where the processes of a run start."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bough.launch.fork_server import ForkedProcess, fork


class LaunchError(RuntimeError):
    """A process did not start: no cluster, no free resources on it, or the process ended before it connected."""


class ClusterGone(LaunchError):
    """The cluster of a run does not answer any more, so no process can start."""


@runtime_checkable
class Launched(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int | None:
        """Its process id on its machine; None until it is known."""
        ...

    def connect(self, timeout_s: float) -> socket.socket:
        """The channel to the process, a blocking stream. Call it once: the channel is the caller's.

        Raises:
            TimeoutError: when the process does not connect in time.
            LaunchError: when it cannot start.
        """
        ...

    def kill(self) -> int | None:
        """End the process and its children; returns its exit status where it is known."""
        ...


@runtime_checkable
class Launcher(Protocol):
    """Starts the processes of one kind, each with the resources reserved for it."""

    @property
    def host(self) -> str:
        """The address at which the processes reach this one."""
        ...

    def launch(self, entry: str, index: int) -> Launched:
        """Start a process; returns at once.

        Args:
            entry: "module:function"; the process calls it with the number of its open file that is the channel.
            index: Of the process among those reserved, from 0; the process that had it has ended.
        """
        ...

    def close(self) -> None:
        """Free the resources. Safe to call twice."""
        ...


@runtime_checkable
class Placement(Protocol):
    """Settings of where processes start: a frozen dataclass."""

    def reserve(self, name: str, count: int, fewest: int | None = None) -> Launcher:
        """Reserve resources for `count` processes of one kind.

        Args:
            name: The kind, for messages: "environment workers".
            count: Number of processes.
            fewest: Number of processes whose resources must be free; the others start once theirs are. None for all.

        Raises:
            LaunchError: when there are no free resources.
            ImportError: when an extra is missing.
        """
        ...


PROCESSES_PER_CORE = 64
"""Most processes of a kind for each core of this machine; processes that mostly wait for others may be many."""


def check_count(name: str, count: int) -> None:
    """Check that this machine can run some processes.

    Args:
        name: The kind, for the message.
        count: Number of processes.

    Raises:
        LaunchError: when there are more than `PROCESSES_PER_CORE` for each core.
    """
    cores = os.cpu_count() or 1
    if count > PROCESSES_PER_CORE * cores:
        raise LaunchError(
            f"{name}: got {count:,} processes on this machine with {cores} cores; need at most "
            f"{PROCESSES_PER_CORE * cores:,}, {PROCESSES_PER_CORE} a core; set a lower number, or start them on a "
            "cluster: placement Ray(...)"
        )


# The child must find the same modules as this process, so it gets the path before any import.
START = """
import json, sys
sys.path[:] = json.loads(sys.argv[3])
from importlib import import_module
module, function = sys.argv[2].split(":")
getattr(import_module(module), function)(int(sys.argv[1]))
"""


def start_child(
    channel: socket.socket, entry: str, path: str, output: socket.socket | None = None
) -> subprocess.Popen[bytes]:
    """Start a process on this machine; it is in a group of its own, and gets a channel and a path of modules.

    What it prints goes to `output`, or to stderr.
    """
    # In its own group Ctrl-C reaches only the parent, and the group can be killed whole. The child ends when its
    # standard input closes (see `end_with_parent`).
    return subprocess.Popen(
        [sys.executable, "-c", START, str(channel.fileno()), entry, path],
        stdin=subprocess.PIPE,
        stdout=2 if output is None else output.fileno(),
        stderr=None if output is None else output.fileno(),
        pass_fds=[channel.fileno()],
        start_new_session=True,
    )


def end_child(child: subprocess.Popen[bytes] | ForkedProcess) -> int:
    """End a process of this machine and its children; returns its exit status, minus the signal that killed it."""
    # After `wait` another group may have the number; 0 is the group of this process.
    if child.returncode is None and child.pid:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    if child.stdin is not None:
        child.stdin.close()
    return child.wait()


def end_with_parent() -> None:
    """End this process and its children when the parent ends; call it in a thread of a process of `start_child`."""
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisMachine:
    """Processes on this machine."""

    def reserve(self, name: str, count: int, fewest: int | None = None) -> Launcher:
        """See `Placement.reserve`; nothing is reserved.

        Raises:
            LaunchError: when there are more processes than this machine can run.
        """
        del fewest
        check_count(name, count)
        return _LocalLauncher()


class _LocalLauncher:
    host = "127.0.0.1"

    def launch(self, entry: str, index: int) -> "_Child":
        del index
        ours, theirs = socket.socketpair()
        with theirs:
            forks = sys.platform == "linux"  # elsewhere system libraries do not survive a fork
            return _Child(fork(entry, theirs) if forks else start_child(theirs, entry, json.dumps(sys.path)), ours)

    def close(self) -> None:
        """Do nothing: processes end by `kill`."""


class _Child:
    def __init__(self, child: subprocess.Popen[bytes] | ForkedProcess, channel: socket.socket) -> None:
        self._child, self._channel = child, channel

    @property
    def pid(self) -> int:
        return self._child.pid

    def connect(self, timeout_s: float) -> socket.socket:
        del timeout_s
        return self._channel

    def kill(self) -> int:
        return end_child(self._child)
