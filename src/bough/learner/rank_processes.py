"""The processes of the other ranks, as rank 0 sees them: it launches them, or torchrun has started them."""

import pickle
import secrets
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Protocol, runtime_checkable

from bough.launch import SECRET_BYTES, Launched, LaunchError, Placement, ThisMachine, ready_channel
from bough.learner.commands import JoinGroup
from bough.learner.ranks import RankFault
from bough.learner.rendezvous import Store, served_store

ENTRY = "bough.learner.rank_process:serve_rank"

THIS_MACHINE = ThisMachine()

END_S = 10.0
"""Longest wait for a rank to end, seconds."""


@runtime_checkable
class RankProcesses(Protocol):
    """The processes of all ranks but 0."""

    @property
    def world_size(self) -> int:
        """Number of ranks, with 0."""
        ...

    @property
    def host(self) -> str:
        """The address at which they reach rank 0."""
        ...

    @property
    def secret(self) -> bytes:
        """As of `JoinGroup`."""
        ...

    @property
    def pids(self) -> tuple[int | None, ...]:
        """Their process ids on their machines, where they are known."""
        ...

    @property
    def remedy(self) -> str:
        """What the user does after a fault; "" where `start` starts all again."""
        ...

    @property
    def alive(self) -> bool:
        """Whether all are running, as far as is known."""
        ...

    def start(self, join: JoinGroup) -> Store:
        """Start them; returns where they meet.

        Raises:
            RankFault: when one does not start within `join.update_s`.
        """
        ...

    def wait(self) -> None:
        """Wait until they have ended by themselves, for some seconds at most."""
        ...

    def end(self) -> None:
        """End them at once. Safe to call twice."""
        ...

    def close(self) -> None:
        """Free their resources. Safe to call twice."""
        ...


class LaunchedRanks:
    """Processes that rank 0 launches."""

    remedy = ""

    def __init__(self, world_size: int, placement: Placement = THIS_MACHINE) -> None:
        """Reserve resources for them.

        Args:
            world_size: Number of ranks, with 0.
            placement: Where they start.

        Raises:
            LaunchError: when there are no free resources.
            ImportError: when an extra is missing.
        """
        self.world_size, self.secret = world_size, secrets.token_bytes(SECRET_BYTES)
        self._launcher = placement.reserve("learner ranks", world_size - 1)
        self._processes = list[Launched]()
        self._channels = list[Connection]()
        self._store: Store | None = None

    @property
    def host(self) -> str:
        """See `RankProcesses.host`."""
        return self._launcher.host

    @property
    def pids(self) -> tuple[int | None, ...]:
        """See `RankProcesses.pids`."""
        return tuple(process.pid for process in self._processes)

    @property
    def alive(self) -> bool:
        """See `RankProcesses.alive`: a process that has ended has closed its channel."""
        return bool(self._channels) and not any(channel.poll() for channel in self._channels)

    def start(self, join: JoinGroup) -> Store:
        """See `RankProcesses.start`."""
        # A new store for each start: a meeting that failed leaves nothing behind.
        self._store, port = served_store(self.host, timedelta(seconds=join.update_s))
        for index in range(self.world_size - 1):
            self._processes.append(self._launcher.launch(ENTRY, index))
        for rank, process in enumerate(self._processes, 1):
            try:
                self._channels.append(ready_channel(process, pickle.dumps((rank, join, port)), join.update_s))
            except LaunchError as error:
                raise RankFault(f"rank {rank} of {self.world_size} did not start: {error}") from error
        return self._store

    def wait(self) -> None:
        """See `RankProcesses.wait`."""
        for channel in self._channels:
            channel.poll(END_S)

    def end(self) -> None:
        """See `RankProcesses.end`."""
        for process in self._processes:
            process.kill()
        for channel in self._channels:
            with suppress(OSError):
                channel.close()
        self._processes, self._channels, self._store = [], [], None

    def close(self) -> None:
        """See `RankProcesses.close`."""
        self._launcher.close()
