"""Forms the process groups of the ranks, through which they communicate."""

import re
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

import torch
import torch.distributed

from bough.launch import in_background
from bough.learner.commands import JoinGroup
from bough.learner.rendezvous import Store, gloo_reaches

dist: Any = torch.distributed

EndedRanks: TypeAlias = Callable[[], Sequence[int]]
"""Returns the ranks whose processes have ended, as far as is known."""

IDLE = timedelta(days=30)
"""Longest wait for the next command: trees may grow for a long time. A rank that dies is noticed at once."""

SIGNAL_S = 0.2
"""Seconds between two checks for signals, and for ranks that have ended."""

LEAVE_S = 2.0
"""Longest wait for the thread to stop after a rank has ended, seconds; one that waits for it takes `update_s`."""

ABOUT_SOURCES = re.compile(r"\[/\S+:\d+\] |\. This is typically caused by.*", re.DOTALL)
"""What gloo adds to its errors: the place in its sources, and advice about logs that Bough does not have."""


class RankFault(RuntimeError):
    """A rank died or did not answer in time. The weights of rank 0 are those before the update."""


def form_groups(rank: int, join: JoinGroup, store: Store, ended: EndedRanks) -> tuple[Any, Any]:
    """Form the groups, once all ranks have come.

    Args:
        rank: Which rank this process is.
        join: The same for all ranks.
        store: Where they exchange their addresses.
        ended: Returns the ranks that will not come.

    Returns:
        The groups for commands and for objects. The backend is gloo between CPUs, NCCL between GPUs.

    Raises:
        RankFault: when a rank does not come within `update_s`, or ends before all have come.
    """
    abandoned = threading.Event()
    # In a thread, so that signals act meanwhile.
    with gloo_reaches(join.host):
        met = in_background(partial(_groups, rank, join, store, abandoned), "bough-ranks")
        while not met.done():
            wait((met,), timeout=SIGNAL_S)
            if not met.done() and (gone := ended()):
                # gloo waits for a dead rank until its limit, and cannot be interrupted: its thread stays behind.
                abandoned.set()
                wait((met,), timeout=LEAVE_S)
                raise RankFault(f"rank {gone[0]} of {join.world_size} ended before the ranks met")
    try:
        return met.result()
    except RuntimeError as error:
        raise RankFault(
            f"rank {rank} of {join.world_size} on {socket.gethostname()}: the ranks did not meet within "
            f"{join.update_s:g} s: {without_sources(error)}; need machines that reach each other at the ports that "
            "kernels choose for gloo: open all of `sysctl net.ipv4.ip_local_port_range` between them"
        ) from error


def _groups(rank: int, join: JoinGroup, store: Store, abandoned: threading.Event) -> tuple[Any, Any]:
    """The groups, once all ranks have come; nothing more is done once `abandoned` is set."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    limit = timedelta(seconds=join.update_s)
    store.set_timeout(limit)
    dist.init_process_group(backend, store=store, rank=rank, world_size=join.world_size, timeout=limit)
    # Timeouts are a rank's own: rank 0 does not wait long for another to take a command.
    commands = None if abandoned.is_set() else dist.new_group(timeout=IDLE if rank else limit, backend="gloo")
    return commands, None if abandoned.is_set() else dist.new_group(timeout=limit, backend="gloo")


def without_sources(error: Exception) -> str:
    """The text of an error of gloo, without `ABOUT_SOURCES`."""
    return ABOUT_SOURCES.sub("", str(error))
