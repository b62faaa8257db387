"""Connects this process to a Ray cluster, and translates Ray's errors."""

import importlib
import os
import socket
import sys
import threading
from collections.abc import Generator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bough.launch.placement import ClusterGone, LaunchError
from bough.version import install

PROBE_S = 5.0
"""Longest wait for the port of an address to open."""

CONNECT_S = 30.0
"""Longest wait for a cluster at an address; a listener that is no cluster keeps Ray waiting for minutes."""

START_S = 300.0
"""Longest wait for a cluster that starts on this machine."""

SIGNAL_S = 0.2
"""Seconds between two looks for signals."""

ADDRESS = "RAY_ADDRESS"
"""The variable of Ray with the address of a cluster."""

NICENESS = "RAY_worker_niceness"
"""The variable of Ray with the niceness of actors. Its default, 15, starves engines beside any other process."""

RECONNECT = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""The variable of Ray with the seconds after which it ends a process whose cluster's head is gone, in its own words."""

RECONNECT_S = 600
"""Longer than most steps, as Bough looks for the head at every step. A process may end so much later than its work."""

WITHOUT_PORT = ("auto", "local")
"""Addresses of Ray without host and port: a running cluster, a new one on this machine."""


def host_and_port(address: str) -> tuple[str, int]:
    """The host and the port of an address, "HOST:PORT" or "ray://HOST:PORT".

    Raises:
        ValueError: when it has none.
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
        if host and port and parts.scheme in ("", "ray") and not parts.path and not parts.username:
            return host, port
    except ValueError:  # no number, or brackets that do not match
        pass
    raise ValueError(f"got {address!r}; need 'auto', 'local', 'HOST:PORT' or 'ray://HOST:PORT', or None")


def connect(address: str | None) -> Any:
    """The module `ray`, connected to a cluster.

    Args:
        address: As of `Ray.address`; has no effect if the process is connected.

    Raises:
        LaunchError: when there is no cluster at the address, or none starts.
        ImportError: without the extra.
    """
    ray = _imported()
    if ray.is_initialized():
        return ray
    named, source = _resolved(address)
    if named is not None and named not in WITHOUT_PORT:
        _probe(source, named)
        where, limit_s = f"connecting to the Ray cluster at {named}", CONNECT_S
    elif address == "auto":
        where, limit_s = "connecting to the Ray cluster of this machine", CONNECT_S
    else:
        if address is None and (others := clusters_elsewhere()):
            raise LaunchError(
                f"{source}, and {' and '.join(others)} on this machine has a folder of its own (`ray start "
                "--temp-dir`); need its address, as this would start a second cluster beside it: set "
                f"Ray.address or {ADDRESS}, or Ray.address='local' for a cluster of this run"
            )
        where, limit_s = "starting a Ray cluster on this machine, for up to two minutes", START_S
    print(where, file=sys.stderr, flush=True)
    _init(ray, source, address, limit_s)
    _connected.append(ray)
    with suppress(Exception):  # a client of Ray has no such address
        print(f"on the Ray cluster at {ray.get_runtime_context().gcs_address}", file=sys.stderr, flush=True)
    return ray


_connected: list[Any] = []
"""The module `ray`, once `connect` has connected it."""


def check_connected() -> None:
    """Check the cluster of this process, if it has one.

    Raises:
        ClusterGone: when its head does not answer any more.
    """
    for ray in connected():
        check_cluster(ray)


def connected() -> list[Any]:
    """The module `ray` if `connect` has connected it."""
    return [ray for ray in _connected if ray.is_initialized()][:1]


def clusters_elsewhere() -> list[str]:
    """Addresses of the user's clusters on this machine whose folder is not Ray's default, which Ray does not find."""
    default = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray")
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):  # it has ended, or is another user's
            program, *words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if process.stat().st_uid != os.getuid() or not program.endswith("/gcs_server"):
                continue
            given = dict(word.removeprefix("--").split("=", 1) for word in words if "=" in word)
            if not Path(given.get("session-dir", default)).is_relative_to(default):
                found.append(f"{given.get('node-ip-address')}:{given.get('gcs_server_port')}")
    return sorted(found)


def _resolved(address: str | None) -> tuple[str | None, str]:
    """The address that Ray takes for `Ray.address`, None if unknown; and where it comes from, for messages."""
    source = f"Ray.address: got {address!r}"
    if address not in (None, "auto"):
        return address, source
    if named := os.environ.get(ADDRESS):
        return named, f"{source}, with {ADDRESS}={named!r}"
    file = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")
    if file.is_file() and (named := file.read_text().strip()):
        return named, f"{source}, with {named!r} in {file}"
    return None, source


def check_cluster(ray: Any) -> None:
    """Check that the cluster is there. Without it Ray blocks for a minute, and then ends this process.

    Raises:
        ClusterGone: when nothing listens at its address any more.
    """
    try:
        address = ray.get_runtime_context().gcs_address
        found = host_and_port(address)
    except Exception:  # a client of Ray has no such address
        return
    try:
        socket.create_connection(found, timeout=PROBE_S).close()
    except OSError as error:
        raise ClusterGone(
            f"got no answer from the Ray cluster at {address} ({error}); need the cluster that the run started on, or "
            "another one; start one with `ray start --head`, and continue the run with `bough resume`"
        ) from error


@contextmanager
def translated(doing: str) -> Generator[None]:
    """Within, an error of Ray is raised as a `LaunchError`. For calls of Ray only: its errors have many classes.

    Args:
        doing: What fails, for the message.
    """
    try:
        yield
    except Exception as error:
        # An error of a task has a traceback of the other process in its text, and the class of its cause too.
        cause = getattr(error, "cause", None) or error
        if cause is error and isinstance(error, TimeoutError | LaunchError):
            raise
        if isinstance(cause, LaunchError):
            raise LaunchError(f"{doing}: {cause}") from error
        raise LaunchError(
            f"{doing}: got {type(cause).__name__} from Ray: {str(cause).strip()}; need a Ray cluster that runs; check "
            "it with `ray status`"
        ) from error


def _probe(source: str, address: str) -> None:
    """Check that a process listens at an address: `ray.init` waits for more than a minute."""
    try:
        found = host_and_port(address)
    except ValueError as error:
        raise LaunchError(f"{source}: {error}; correct the address") from error
    try:
        socket.create_connection(found, timeout=PROBE_S).close()
    except OSError as error:
        raise LaunchError(
            f"{source}, where nothing listens ({error}); need the address of a Ray cluster that runs; start one there "
            "with `ray start --head`, correct the address, or leave it out to start one on this machine (after `ray "
            "stop`, which forgets an old one)"
        ) from error


def _init(ray: Any, source: str, address: str | None, limit_s: float) -> None:
    """Call `ray.init` in a thread, so that signals act meanwhile and keep their handlers."""
    outcome = Future[None]()

    def work() -> None:
        try:
            ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        except BaseException as error:  # raised to the caller
            outcome.set_exception(error)
            return
        outcome.set_result(None)
        # Linux ends the processes of a cluster that starts here together with the thread that started them.
        threading.Event().wait()

    threading.Thread(target=work, name="bough-ray", daemon=True).start()
    left = limit_s
    while not outcome.done() and left > 0:
        wait((outcome,), timeout=SIGNAL_S)
        left -= SIGNAL_S
    if not outcome.done():
        raise LaunchError(
            f"{source}, where no Ray cluster answered within {limit_s:g} s; need one that runs; check it with "
            "`ray status`, end an old one on this machine with `ray stop`, or correct the address"
        )
    try:
        outcome.result()
    except Exception as error:  # Ray's errors have many classes
        raise LaunchError(
            f"{source}, where Ray found no cluster ({str(error).strip()}); need {_remedy(error)}"
        ) from error


def _remedy(error: BaseException) -> str:
    """What `ray.init` needs after an error."""
    cause: BaseException | None = error
    while cause is not None:
        if "AuthToken" in str(cause):
            return (
                "the token of the cluster: set RAY_AUTH_MODE=token, and copy ~/.ray/auth_token from its head or set "
                "RAY_AUTH_TOKEN"
            )
        cause = cause.__cause__
    return "one that runs; start it with `ray start --head`, or leave Ray.address out to start one on this machine"


def _imported() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A cluster that starts here gives its processes the run's own priority: rank 0 waits for the others.
    os.environ.setdefault(NICENESS, "0")
    os.environ.setdefault(RECONNECT, str(RECONNECT_S))
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError(f"placement=Ray: got no package ray; need the extra: {install('ray')}") from error
