"""Processes of a run: where they start, on this machine or on a cluster, and the channel to each."""

from bough.launch.background import in_background, in_event_loop
from bough.launch.bounded import CallEnded, bounded_call
from bough.launch.handshake import (
    OUTPUT,
    STARTS,
    SetupError,
    await_ready,
    give_setup,
    limit_waits,
    ready_channel,
    receive_setup,
    retried,
    socket_of,
)
from bough.launch.interface import interface_to
from bough.launch.listen import BIND, listener, reached_at
from bough.launch.out_of_memory import memory_note
from bough.launch.placement import ClusterGone, Launched, Launcher, LaunchError, Placement, ThisMachine, check_count
from bough.launch.places import places
from bough.launch.ray_cluster import Ray
from bough.launch.ray_connect import check_connected
from bough.launch.remote_logs import kept_logs
from bough.launch.signed import SECRET_BYTES, given_secret, signed, verified
from bough.launch.torchrun import Torchrun

__all__ = [
    "BIND",
    "OUTPUT",
    "SECRET_BYTES",
    "STARTS",
    "CallEnded",
    "ClusterGone",
    "LaunchError",
    "Launched",
    "Launcher",
    "Placement",
    "Ray",
    "SetupError",
    "ThisMachine",
    "Torchrun",
    "await_ready",
    "bounded_call",
    "check_connected",
    "check_count",
    "give_setup",
    "given_secret",
    "in_background",
    "in_event_loop",
    "interface_to",
    "kept_logs",
    "limit_waits",
    "listener",
    "memory_note",
    "places",
    "reached_at",
    "ready_channel",
    "receive_setup",
    "retried",
    "signed",
    "socket_of",
    "verified",
]
