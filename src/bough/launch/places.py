"""Where a run and its processes are, for its manifest."""

import platform

from bough.launch.ray_cluster import ray_places
from bough.launch.torchrun import Torchrun


def places() -> dict[str, object]:
    """The machine of this process, and the cluster of its other processes.

    Returns:
        Values that JSON can write: host; cluster: null, or its kind, "torchrun" or "ray", its address, and for Ray its
        version, its nodes, and by kind of process the addresses of the nodes that were reserved for it.
    """
    torchrun = Torchrun.found()
    cluster = {"kind": "torchrun", "address": torchrun.host} if torchrun else ray_places()
    return {"host": platform.node(), "cluster": cluster}
