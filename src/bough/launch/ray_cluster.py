"""Processes on a Ray cluster."""

import importlib
import json
import os
import secrets
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bough.launch.placement import LaunchError, start_child

TOKEN_BYTES = 32
POLL_S = 0.2

NICENESS = "RAY_worker_niceness"
"""The variable of Ray with the niceness of actors. Its default, 15, starves engines beside any other process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ray:
    """Processes on a Ray cluster (extra `ray`), each in a place of a placement group.

    An actor on the place's machine starts the process and ends with it. The process connects to this one over TCP and
    identifies itself by a secret. Messages are not encrypted, so all machines belong in one private network. Each has
    Bough, the extras of the run and the user's files at the same paths.

    Attributes:
        address: Of the cluster, as for `ray.init`: "auto" or "ray://..."; None starts one on this machine, or takes the
            one that this process is connected to.
        cpus: CPU cores of a process.
        gpus: GPUs of a process.
        strategy: How places are spread over machines: "PACK", "SPREAD", "STRICT_PACK" or "STRICT_SPREAD".
        wait_s: Longest wait for room on the cluster, in seconds.
    """

    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    strategy: str = "PACK"
    wait_s: float = 60.0

    def __post_init__(self) -> None:
        if self.strategy not in ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"):
            raise ValueError(
                f"Ray.strategy: got {self.strategy!r}; need 'PACK', 'SPREAD', 'STRICT_PACK' or 'STRICT_SPREAD'"
            )
        if self.cpus < 0 or self.gpus < 0 or self.wait_s <= 0:
            raise ValueError(
                f"Ray: got cpus={self.cpus}, gpus={self.gpus}, wait_s={self.wait_s}; need 0 or more, 0 or more, more "
                "than 0"
            )

    def reserve(self, name: str, count: int) -> "RayLauncher":
        """See `Placement.reserve`.

        Raises:
            LaunchError: when the cluster has no room within `wait_s`, or there is no cluster at the address.
            ImportError: without the extra.
        """
        ray = _ray()
        if not ray.is_initialized():
            try:
                ray.init(address=self.address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            except ConnectionError as error:
                raise LaunchError(f"Ray.address: got {self.address!r}; need a cluster that runs: {error}") from error
        bundle = {"CPU": self.cpus} | ({"GPU": self.gpus} if self.gpus else {})
        group = ray.util.placement_group([bundle] * count, strategy=self.strategy)
        if not group.wait(self.wait_s):
            ray.util.remove_placement_group(group)
            have = {kind: ray.cluster_resources().get(kind, 0.0) for kind in bundle}
            raise LaunchError(
                f"{name}: got no room on the Ray cluster within {self.wait_s:g} s; need {count} x {bundle} free "
                f"of {have} in all: set Ray.cpus or the number of processes lower, or add machines"
            )
        return RayLauncher(ray, group, name, bundle)


class RayLauncher:
    """Starts processes in the places of a placement group."""

    def __init__(self, ray: Any, group: Any, name: str, bundle: dict[str, float]) -> None:
        """For the places that `Ray.reserve` reserved."""
        self._ray, self._group, self._name, self._bundle = ray, group, name, bundle
        self._actor = ray.remote(_Starter)

    @property
    def host(self) -> str:
        """The address of this machine in the cluster."""
        return str(self._ray.util.get_node_ip_address())

    def launch(self, entry: str, number: int) -> "RayProcess":
        """See `Launcher.launch`."""
        scheduling = importlib.import_module("ray.util.scheduling_strategies")
        actor = self._actor.options(
            num_cpus=self._bundle["CPU"],
            num_gpus=self._bundle.get("GPU", 0),
            name=f"bough {self._name} {number} {secrets.token_hex(4)}",
            max_restarts=0,
            scheduling_strategy=scheduling.PlacementGroupSchedulingStrategy(
                placement_group=self._group, placement_group_bundle_index=number
            ),
        ).remote()
        return RayProcess(self._ray, actor, self.host, entry)

    def close(self) -> None:
        """See `Launcher.close`."""
        with suppress(Exception):  # the cluster may be gone
            self._ray.util.remove_placement_group(self._group)


class RayProcess:
    """A process that an actor starts."""

    def __init__(self, ray: Any, actor: Any, host: str, entry: str) -> None:
        """Have the actor start it."""
        self._ray, self._actor = ray, actor
        self._listener = socket.create_server(("", 0))
        self._listener.settimeout(POLL_S)
        self._token = secrets.token_bytes(TOKEN_BYTES)
        self._channel: socket.socket | None = None
        self._pid: int | None = None
        self._started = actor.start.remote(
            host, self._listener.getsockname()[1], self._token, entry, json.dumps(sys.path), os.getcwd()
        )

    @property
    def pid(self) -> int | None:
        """The process id on its machine, once it has connected."""
        return self._pid

    def connect(self, timeout_s: float) -> socket.socket:
        """See `Launched.connect`."""
        end = time.monotonic() + timeout_s
        while self._channel is None:
            self._check()
            with suppress(TimeoutError):
                self._channel = self._accept()
            if self._channel is None and time.monotonic() > end:
                raise TimeoutError
        if self._pid is None:
            self._pid = self._ray.get(self._started, timeout=timeout_s)
        return self._channel

    def kill(self) -> None:
        """See `Launched.kill`. The child of an actor ends with it."""
        self._listener.close()
        with suppress(Exception):  # the cluster may be gone
            self._ray.kill(self._actor)

    def _check(self) -> None:
        """Raise the error of an actor that failed to start the process."""
        done, _ = self._ray.wait([self._started], timeout=0)
        if done:
            try:
                self._ray.get(done[0])
            except Exception as error:  # Ray's errors have many classes
                raise LaunchError(f"a process did not start on the Ray cluster: {error}") from error

    def _accept(self) -> socket.socket | None:
        """The channel, if the next connection has the secret."""
        channel, _ = self._listener.accept()
        channel.settimeout(POLL_S * 10)
        with suppress(OSError):
            if secrets.compare_digest(channel.recv(TOKEN_BYTES, socket.MSG_WAITALL), self._token):
                channel.settimeout(None)
                channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return channel
        channel.close()
        return None


class _Starter:
    """The actor on the place's machine: starts the process, which ends when the actor ends."""

    def start(self, host: str, port: int, token: bytes, entry: str, path: str, folder: str) -> int:
        """Connect to the run and give the connection to a child; returns its process id."""
        if os.path.isdir(folder):
            os.chdir(folder)
        with socket.create_connection((host, port)) as channel:
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            channel.sendall(token)
            # Kept: the child ends when the pipe to its standard input closes.
            self._child = start_child(channel, entry, path)
        return self._child.pid


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A cluster that starts here gives its processes the run's own priority: rank 0 waits for the others.
    os.environ.setdefault(NICENESS, "0")
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError('placement=Ray: got no package ray; need the extra: pip install "bough[ray]"') from error
