"""Processes on a Ray cluster."""

import importlib
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bough.launch.listen import reached_at
from bough.launch.placement import LaunchError
from bough.launch.ray_connect import WITHOUT_PORT, check_cluster, connect, connected, host_and_port, translated
from bough.launch.ray_process import RayProcess, Starter

STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")

_open: "list[RayLauncher]" = []
"""The launchers in use."""

POLL_S = 0.5
"""Seconds between two looks for signals, in a wait for free resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ray:
    """Processes on a Ray cluster (extra `ray`), each in a bundle of a placement group.

    An actor on its machine starts the process and ends with it. The process connects to this one over TCP and
    identifies itself by a secret. Messages are not encrypted, so all machines belong in one private network. Each has
    Bough, the extras of the run, the run's working directory and the user's files at the same paths. What a process
    prints is in `logs/` of the run's directory.

    Attributes:
        address: Of the cluster, as for `ray.init`: "auto", "local", "HOST:PORT" or "ray://HOST:PORT"; None starts one
            on this machine, or takes the one that this process is connected to.
        cpus: CPU cores of a process; above 1 a whole number.
        gpus: GPUs of a process; above 1 a whole number.
        strategy: How processes are spread over machines: "PACK", "SPREAD", "STRICT_PACK" or "STRICT_SPREAD".
        wait_s: Longest wait for free resources of the cluster, and for a process to start in them, in seconds. Where
            fewer processes are enough, as with `min_ranks`, the run begins after both waits with the ones that started.
    """

    address: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    strategy: str = "PACK"
    wait_s: float = 60.0

    def __post_init__(self) -> None:
        if self.address is not None and self.address not in WITHOUT_PORT:
            try:
                host_and_port(self.address)
            except ValueError as error:
                raise ValueError(f"Ray.address: {error}") from error
        if self.strategy not in STRATEGIES:
            raise ValueError(f"Ray.strategy: got {self.strategy!r}; need one of {', '.join(map(repr, STRATEGIES))}")
        for name in ("cpus", "gpus"):
            number = getattr(self, name)
            if not 0 <= number < math.inf or (number > 1 and number != int(number)):
                raise ValueError(f"Ray.{name}: got {number}; need 0 to 1, or a whole number above 1")
        if not self.cpus and not self.gpus:
            raise ValueError("Ray: got cpus=0 and gpus=0; need one of them above 0; set cpus=0.01 for a small share")
        if not 0 < self.wait_s < math.inf:
            raise ValueError(f"Ray.wait_s: got {self.wait_s}; need a finite number above 0, seconds")

    def reserve(self, name: str, count: int, fewest: int | None = None) -> "RayLauncher":
        """See `Placement.reserve`. `strategy` is that of the processes whose resources are free.

        Raises:
            LaunchError: when the cluster has no free resources within `wait_s`, or there is no cluster at the address.
            ImportError: without the extra.
        """
        ray = connect(self.address)
        bundle = {"CPU": self.cpus} | ({"GPU": self.gpus} if self.gpus else {})
        fewest = count if fewest is None else fewest
        with translated(f"{name}: no resources were reserved"):
            groups = self._reserved(ray, bundle, count) or (self._reserved(ray, bundle, fewest) if fewest else [])
            if sum(size for _, size in groups) < fewest:
                have = {kind: ray.cluster_resources().get(kind, 0.0) for kind in bundle}
                raise LaunchError(
                    f"{name}: got no free resources on the Ray cluster within {self.wait_s:g} s; need {fewest} x "
                    f"{bundle} free of {have} in all: set Ray.cpus or the number of processes lower, or add machines"
                )
            # A placement group for each: a process starts as soon as its own resources are free.
            later = count - sum(size for _, size in groups)
            groups += [(ray.util.placement_group([bundle]), 1) for _ in range(later)]
        return RayLauncher(ray, groups, name, bundle, self.wait_s)

    def _reserved(self, ray: Any, bundle: Mapping[str, float], count: int) -> "list[tuple[Any, int]]":
        """A placement group with its number of bundles; empty when its resources are not free within `wait_s`."""
        group, ready = ray.util.placement_group([bundle] * count, strategy=self.strategy), False
        try:
            ready = _wait(group, self.wait_s)
        finally:
            if not ready:
                ray.util.remove_placement_group(group)
        return [(group, count)] if ready else []


def ray_places() -> dict[str, object] | None:
    """The cluster of this process, as `places` has it; None without one."""
    ray = next(iter(connected()), None)
    if ray is None:
        return None
    with translated("the nodes of the cluster are unknown"):
        nodes = {str(each["NodeID"]): each for each in ray.nodes() if each["Alive"]}
        have = {name: each["NodeManagerAddress"] for name, each in nodes.items()}
        return {
            "kind": "ray",
            "address": _address(ray),
            "version": ray.__version__,
            "nodes": [
                {"host": each["NodeManagerHostname"], "address": have[name], "resources": _resources(each["Resources"])}
                for name, each in nodes.items()
            ],
            "processes": {each.name: [have.get(node, node) for node in each.nodes] for each in _open},
        }


def _address(ray: Any) -> str | None:
    with suppress(Exception):  # a client of Ray has no such address
        return str(ray.get_runtime_context().gcs_address)
    return None


def _resources(found: Mapping[str, float]) -> dict[str, float]:
    """Cores and GPUs of a node."""
    return {kind: found[kind] for kind in ("CPU", "GPU") if kind in found}


def _wait(group: Any, wait_s: float) -> bool:
    """Wait for the bundles of a placement group, in pieces between which signals act."""
    end = time.monotonic() + wait_s
    while not (ready := group.wait(POLL_S)) and time.monotonic() < end:
        pass
    return ready


class RayLauncher:
    """Starts processes in the bundles of placement groups.

    Attributes:
        name: The kind of process.
    """

    def __init__(
        self, ray: Any, groups: Sequence[tuple[Any, int]], name: str, bundle: dict[str, float], wait_s: float
    ) -> None:
        """For the groups that `Ray.reserve` made, each with its number of bundles."""
        self._ray, self.name, self._bundle, self._wait_s = ray, name, bundle, wait_s
        self._groups = [group for group, _ in groups]
        self._bundles = [(group, place) for group, size in groups for place in range(size)]
        self._actor = ray.remote(Starter)
        with translated(f"{name}: this machine has no address in the cluster"):
            self._host = reached_at(str(ray.util.get_node_ip_address()))
        _open.append(self)

    @property
    def host(self) -> str:
        """The address of this machine in the cluster, or that of `BOUGH_BIND`."""
        return self._host

    @property
    def nodes(self) -> list[str]:
        """The ids of the nodes of its bundles, in their order; "" for one without a node yet."""
        tables = [self._ray.util.placement_group_table(group)["bundles_to_node_id"] for group in self._groups]
        return [str(table[bundle] or "") for table in tables for bundle in sorted(table)]

    def launch(self, entry: str, index: int) -> "RayProcess":
        """See `Launcher.launch`."""
        group, place = self._bundles[index]

        def make_actor() -> Any:
            scheduling = importlib.import_module("ray.util.scheduling_strategies")
            return self._actor.options(
                num_cpus=self._bundle["CPU"],
                num_gpus=self._bundle.get("GPU", 0),
                name=f"bough {self.name} {index} {secrets.token_hex(4)}",
                max_restarts=0,
                scheduling_strategy=scheduling.PlacementGroupSchedulingStrategy(
                    placement_group=group, placement_group_bundle_index=place
                ),
            ).remote()

        return RayProcess(self._ray, make_actor, self.host, entry, f"{self.name} {index}", self._wait_s)

    def close(self) -> None:
        """See `Launcher.close`."""
        if self in _open:
            _open.remove(self)
        with suppress(Exception):  # the cluster may be gone
            check_cluster(self._ray)
            for group in self._groups:
                self._ray.util.remove_placement_group(group)
