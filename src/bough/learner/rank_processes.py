"""The processes of the other ranks, as rank 0 sees them: it launches them, or torchrun has started them."""

import pickle
import secrets
from collections.abc import Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection
from typing import Protocol, runtime_checkable

from bough.launch import (
    SECRET_BYTES,
    Launched,
    LaunchError,
    Placement,
    SetupError,
    ThisMachine,
    in_background,
    ready_channel,
)
from bough.learner.commands import JoinGroup
from bough.learner.process_group import RankFault
from bough.learner.rendezvous import Store, served_store

ENTRY = "bough.learner.rank_process:serve_rank"

THIS_MACHINE = ThisMachine()

END_S = 10.0
"""Longest wait for a rank to end, seconds."""


@runtime_checkable
class RankProcesses(Protocol):
    """The processes of all ranks but 0."""

    @property
    def wanted(self) -> int:
        """Number of ranks, with 0, when none is lost."""
        ...

    @property
    def world_size(self) -> int:
        """Number of ranks that run, with 0."""
        ...

    @property
    def missing(self) -> str:
        """Why some did not start; "" when all run."""
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

    def ended(self) -> Sequence[int]:
        """The ranks that had started and have ended since, as far as is known."""
        ...

    def start(self, limit_s: float) -> None:
        """Start them.

        Args:
            limit_s: Longest wait for them, seconds.

        Raises:
            RankFault: when too few start in time.
        """
        ...

    def more(self, limit_s: float) -> bool:
        """Whether a lost rank has started since; the other lost ones are tried again, without a wait.

        Args:
            limit_s: As of `start`.
        """
        ...

    def join(self, join: JoinGroup) -> Store:
        """Have the running ranks join a new group; returns where they meet.

        Raises:
            RankFault: when one has ended.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    process: Launched
    channel: Connection


class LaunchedRanks:
    """Processes that rank 0 launches."""

    remedy = ""

    def __init__(self, world_size: int, placement: Placement = THIS_MACHINE, fewest: int | None = None) -> None:
        """Reserve resources for them.

        Args:
            world_size: Number of ranks, with 0.
            placement: Where they start.
            fewest: Fewest ranks, with 0, that are enough; None for all.

        Raises:
            LaunchError: when there are no free resources.
            ImportError: when an extra is missing.
        """
        self.wanted, self._fewest, self.missing = world_size, fewest or world_size, ""
        self.secret = secrets.token_bytes(SECRET_BYTES)
        self._launcher = placement.reserve("learner ranks", world_size - 1, self._fewest - 1)
        self._starting = dict[int, tuple[Launched, Future[Connection]]]()
        self._running = dict[int, _Rank]()
        self._store: Store | None = None

    @property
    def world_size(self) -> int:
        """See `RankProcesses.world_size`."""
        return 1 + len(self._running)

    @property
    def host(self) -> str:
        """See `RankProcesses.host`."""
        return self._launcher.host

    @property
    def pids(self) -> tuple[int | None, ...]:
        """See `RankProcesses.pids`."""
        return tuple(rank.process.pid for _, rank in sorted(self._running.items()))

    def ended(self) -> Sequence[int]:
        """See `RankProcesses.ended`: a process that has ended has closed its channel."""
        return [rank for rank, (_, each) in enumerate(sorted(self._running.items()), 1) if each.channel.poll()]

    def start(self, limit_s: float) -> None:
        """See `RankProcesses.start`."""
        self._launch(limit_s)
        wait(started for _, started in self._starting.values())
        faults = [f"rank {index + 1} of {self.wanted} did not start: {error}" for index, error in self._take().items()]
        self.missing = faults[0] if faults else ""
        if self.world_size < self._fewest:
            raise RankFault(f"{self.missing}; to go on with fewer set min_ranks (now {self._fewest}) or ranks lower")

    def more(self, limit_s: float) -> bool:
        """See `RankProcesses.more`."""
        before = self.world_size
        self._take()
        self._launch(limit_s)
        return self.world_size > before

    def join(self, join: JoinGroup) -> Store:
        """See `RankProcesses.join`."""
        # A new store for each group: a meeting that failed leaves nothing behind.
        self._store, port = served_store(self.host, timedelta(seconds=join.update_s))
        for rank, (_, each) in enumerate(sorted(self._running.items()), 1):
            try:
                each.channel.send((rank, join, port))
            except OSError as error:
                raise RankFault(f"rank {rank} of {join.world_size} ended before the ranks met: {error}") from error
        return self._store

    def wait(self) -> None:
        """See `RankProcesses.wait`."""
        for rank in self._running.values():
            with suppress(OSError):
                rank.channel.send(None)
        for rank in self._running.values():
            rank.channel.poll(END_S)

    def end(self) -> None:
        """See `RankProcesses.end`."""
        for process, _ in self._starting.values():
            process.kill()
        wait(started for _, started in self._starting.values())
        self._take()
        for rank in self._running.values():
            rank.process.kill()
            with suppress(OSError):
                rank.channel.close()
        self._running, self._store = {}, None

    def close(self) -> None:
        """See `RankProcesses.close`."""
        self._launcher.close()

    def _launch(self, limit_s: float) -> None:
        """Launch the ranks that neither run nor start."""
        for index in range(self.wanted - 1):
            if index not in self._running and index not in self._starting:
                process = self._launcher.launch(ENTRY, index)
                ready = partial(ready_channel, process, pickle.dumps(None), limit_s)
                self._starting[index] = process, in_background(ready, f"bough-rank-{index + 1}")

    def _take(self) -> dict[int, Exception]:
        """Move started ranks to the running ones; returns the errors of failed starts, by index."""
        faults = dict[int, Exception]()
        for index, (process, started) in [*self._starting.items()]:
            if not started.done():
                continue
            del self._starting[index]
            try:
                self._running[index] = _Rank(process=process, channel=started.result())
            except (LaunchError, SetupError) as error:
                process.kill()
                faults[index] = error
        return faults
