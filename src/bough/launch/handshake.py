"""The handshake of a run and a process that it starts.

run                        process
Launcher.launch  ------->  starts and connects
give_setup       ------->  receive_setup; compares versions, builds what it serves
await_ready      <-------  None, or the text of its error
"""

import importlib.metadata
import json
import os
import pickle
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from bough.launch.placement import Launched, LaunchError, end_with_parent
from bough.version import __version__

Result = TypeVar("Result")

PACKAGES = ("torch", "numpy", "transformers", "peft")
"""What both ends need in one version, besides Bough and Python: setups are pickled, and results are to be equal."""

OUTPUT = "its output is above, or in the run's logs/ if it was on a cluster"

STARTS = 3
"""Most starts of a process in a row before it is ready."""


class SetupError(ValueError):
    """A process cannot serve its setup; has the error of the process."""


def retried(start: Callable[[], Result], error: type[Exception]) -> Result:
    """The result of `start`, which is called up to `STARTS` times while it raises `error`.

    Raises:
        error: that of the last call.
    """
    for left in reversed(range(STARTS)):
        try:
            return start()
        except error:
            if not left:
                raise
    raise AssertionError("unreachable")


def give_setup(process: Launched, setup: bytes, timeout_s: float) -> Connection:
    """Send a process its setup; returns the channel, which is the caller's from now on.

    Args:
        process: A process that has just been launched.
        setup: Its setup, pickled.
        timeout_s: Longest wait for its connection, and for each call on the channel, seconds.

    Raises:
        LaunchError: when it cannot start, or does not connect in time.
    """
    try:
        connection = Connection(process.connect(timeout_s).detach())
    except TimeoutError as error:
        raise LaunchError(f"it did not connect within {timeout_s:g} s") from error
    except OSError as error:
        raise LaunchError(f"it did not connect ({error})") from error
    limit_waits(connection, timeout_s)
    # `await_ready` notices a process that dies or hangs meanwhile.
    with suppress(OSError):
        connection.send_bytes(json.dumps(_versions()).encode())
        connection.send_bytes(setup)
    return connection


def await_ready(connection: Connection, timeout_s: float) -> None:
    """Wait until the process at the other end is ready.

    Raises:
        SetupError: when it cannot serve its setup.
        LaunchError: when it dies, or is not ready in time.
    """
    try:
        if not connection.poll(timeout_s):
            raise TimeoutError
        wrong: str | None = connection.recv()
    except (TimeoutError, BlockingIOError) as error:
        raise LaunchError(f"it was not ready within {timeout_s:g} s") from error
    except (EOFError, OSError) as error:
        raise LaunchError(f"it ended as it started; {OUTPUT}") from error
    if wrong is not None:
        raise SetupError(wrong)


def ready_channel(process: Launched, setup: bytes, timeout_s: float) -> Connection:
    """The channel to a process that has its setup and is ready: `give_setup`, then `await_ready`; raises as they do."""
    connection = give_setup(process, setup, timeout_s)
    try:
        await_ready(connection, timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection


def receive_setup(channel: int) -> tuple[Connection, Any]:
    """In the process: its channel and its setup. The process ends when the run does.

    After it, send None when ready, or the text of an error.

    Args:
        channel: The number of the open file that is the channel.

    Raises:
        EOFError, ConnectionError: when the run has ended, or has other versions, which are sent to it.
    """
    threading.Thread(target=end_with_parent, daemon=True).start()
    connection = Connection(channel)
    run, here = json.loads(connection.recv_bytes()), _versions()
    if differing := [name for name in here if run.get(name) != here[name]]:
        other = ", ".join(f"{name} {here[name] or 'missing'} (the run has {run.get(name)})" for name in differing)
        connection.send(
            f"machine {socket.gethostname()}: got {other}; need the run's versions on every machine; install them there"
        )
        raise ConnectionAbortedError(other)
    return connection, pickle.loads(connection.recv_bytes())


def _versions() -> dict[str, str]:
    """Of Python, Bough and `PACKAGES`; "" for what is not installed."""
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "bough": __version__}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            found[name] = ""
    return found


def socket_of(connection: Connection) -> socket.socket:
    """A socket for a channel; closing it does not close the channel."""
    return socket.socket(fileno=os.dup(connection.fileno()))


def limit_waits(connection: Connection, limit_s: float) -> None:
    """Limit the waits of calls on a channel, whose buffers hold less than a model's weights.

    A call that takes longer raises `BlockingIOError`.
    """
    limit = struct.pack("ll", int(limit_s), int(limit_s % 1 * 1e6))
    with socket_of(connection) as channel:
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            channel.setsockopt(socket.SOL_SOCKET, option, limit)
