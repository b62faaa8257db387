"""Which GPU each rank computes on."""

import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleGpus:
    """The GPUs that a process sees; equal for two processes if they see the same GPUs.

    Attributes:
        machine: Its machine.
        chosen: The environment variable that restricts them.
        count: How many it sees.
    """

    machine: tuple[str, int]
    chosen: str | None
    count: int

    @staticmethod
    def here() -> "VisibleGpus":
        """The GPUs that this process sees."""
        return VisibleGpus(
            machine=(socket.gethostname(), uuid.getnode()),
            chosen=os.environ.get("CUDA_VISIBLE_DEVICES"),
            count=torch.cuda.device_count(),
        )


def own_gpus(visible: Sequence[VisibleGpus]) -> list[int | None]:
    """The index of each rank's own GPU among the visible ones; None for a rank without one.

    Examples:
        >>> two = VisibleGpus(machine=("a", 1), chosen=None, count=2)
        >>> own_gpus([two, two, two, VisibleGpus(machine=("b", 2), chosen="5", count=1)])
        [0, 1, None, 0]

    Args:
        visible: What each rank sees, in the order of ranks.
    """
    indices = [list(visible[:rank]).count(each) for rank, each in enumerate(visible)]
    return [index if index < each.count else None for index, each in zip(indices, visible, strict=True)]


def check_gpus(gpus: Sequence[int | None], device: torch.device) -> None:
    """Check that each rank has a GPU of its own, when the policy is on one.

    Args:
        gpus: The result of `own_gpus`.
        device: The policy's device.

    Raises:
        ValueError: when a rank has none.
    """
    if device.type == "cuda" and None in gpus:
        without = sum(gpu is None for gpu in gpus)
        raise ValueError(
            f"ranks: got {len(gpus)} for a policy on {device}, {without} of them without a GPU; need a GPU for each "
            "rank; lower ranks, set rank_placement=Ray(gpus=1) on a cluster, or set the policy's device=cpu"
        )
