"""Ranks that torchrun started: they find each other by its store.

    rank 1    here/1 = a random name NAME; waits for met/NAME
    rank 0    met/NAME = its own random name, the prefix of all further keys; again if here/1 has changed
    rank 1    met/1
    rank 0    the run: join/1, and at the end of the process, if that ended well, join/2 = "end"
    rank 1    waits for join/1, follows, waits for join/2, ends

When torchrun starts all processes again, its store stays, with the keys of the earlier processes. A process that makes
several runs, one after the other, sets one key for each.
"""

import atexit
import functools
import itertools
import os
import pickle
import secrets
import signal
import socket
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta

from bough.launch import LaunchError, Torchrun, given_secret, signed, verified
from bough.learner.commands import JoinGroup
from bough.learner.follow import follow
from bough.learner.process_group import IDLE, RankFault
from bough.learner.rendezvous import Store, part_of, torchrun_store

END = b"end"

CONNECT = timedelta(minutes=2)
"""Longest wait for a connection to the store."""

LIMIT_S = 600.0
"""Longest wait for all ranks, seconds."""

END_S = 10.0
"""Longest wait for all ranks at the end, seconds: the store may be in this process."""

POLL_S = 0.1
"""Seconds between two checks for the other ranks."""

NAME_BYTES = 16


class TorchrunRanks:
    """The processes beside rank 0 that torchrun started."""

    remedy = (
        "torchrun starts no single rank again: `torchrun --max-restarts=3 ... -m bough resume RUN` goes on from the "
        "last checkpoint, and starts all ranks again after later faults"
    )
    pids = ()
    missing = ""

    def __init__(self, torchrun: Torchrun) -> None:
        """For the processes that `Torchrun.found` found."""
        self.wanted = self.world_size = torchrun.world_size
        self.secret = given_secret()
        self._leader = _leader_of(torchrun)

    @property
    def host(self) -> str:
        """See `RankProcesses.host`."""
        return self._leader.host

    def start(self, limit_s: float) -> None:
        """Wait for them: torchrun has started them.

        Raises:
            LaunchError: as `StoreLeader.meet`.
            PermissionError: the same.
        """
        del limit_s
        self._leader.meet()

    def more(self, limit_s: float) -> bool:
        """False: torchrun starts all again."""
        del limit_s
        return False

    def join(self, join: JoinGroup) -> Store:
        """See `RankProcesses.join`."""
        # They execute the same script, and have its classes.
        files = {name: file for name, file in join.files.items() if name != "__main__"}
        # Who reaches the store reads it: each process has the secret from its environment.
        join = replace(join, files=files, secret=b"")
        return self._leader.publish(signed(self.secret, pickle.dumps(join)))

    def ended(self) -> Sequence[int]:
        """None: torchrun watches them."""
        return ()

    def wait(self) -> None:
        """Do nothing: they wait for the next run."""

    def end(self) -> None:
        """Do nothing: torchrun ends them."""

    def close(self) -> None:
        """Do nothing: their resources are torchrun's."""


class StoreLeader:
    """Rank 0 of a store: it meets the other ranks, and publishes to them.

    Attributes:
        host: Its address, as resolved by the last rank.
        ended_well: Whether the newest run of the process ended without an error.
    """

    def __init__(self, store: Store, secret: bytes, world_size: int) -> None:
        """For a store that all ranks have.

        Args:
            store: The store.
            secret: The secret of all ranks.
            world_size: Number of ranks.
        """
        self._secret, self._world_size, self.host, self.ended_well = secret, world_size, "", False
        self._name = secrets.token_hex(NAME_BYTES)
        self._all, self._own = store, part_of(store, self._name)
        self._missing = dict.fromkeys(range(1, world_size), b"")

    def meet(self, limit_s: float = LIMIT_S) -> None:
        """Wait until all ranks have come; signals act meanwhile.

        Raises:
            LaunchError: when one does not come in time.
            PermissionError: when one has another secret.
        """
        end = time.monotonic() + limit_s
        while self._missing:
            for rank in tuple(self._missing):
                self._look_for(rank)
            if self._missing and time.monotonic() > end:
                raise LaunchError(
                    f"got no answer of ranks {', '.join(map(str, self._missing))} of {self._world_size} within "
                    f"{limit_s:g} s; need all to reach torchrun's store on this machine; read their output"
                )
            time.sleep(POLL_S)

    def _look_for(self, rank: int) -> None:
        """Answer the newest name of a rank, which may be that of an earlier process, until the rank has the answer."""
        key = f"here/{rank}"
        if self._own.check([f"met/{rank}"]):
            del self._missing[rank]
        elif self._all.check([key]) and (here := self._all.get(key)) != self._missing[rank]:
            self._missing[rank] = here
            try:
                name, host = verified(self._secret, here).decode().split()
            except PermissionError as error:
                raise PermissionError(f"rank {rank} of {self._world_size}: {error}") from error
            # On its own machine the name of rank 0 may stand for an address that others cannot reach. The last rank
            # is on another machine, if there are several.
            self.host = host if rank == self._world_size - 1 else self.host
            self._all.set(f"met/{name}", signed(self._secret, self._name.encode()))

    def publish(self, content: bytes) -> Store:
        """Publish a content to all ranks; returns the part of the store for it."""
        key = _key(self._own.add("joins", 1))
        self._own.set(key, content)
        return part_of(self._own, key)

    def end(self) -> None:
        """Let the other ranks end with status 0, if the newest run ended without an error."""
        # Without it they go on until torchrun starts or ends them.
        with suppress(RuntimeError, PermissionError):
            if self.ended_well:
                self.meet()
                self.publish(END)
                until = time.monotonic() + END_S
                while not self._own.check(self._ends) and time.monotonic() < until:
                    time.sleep(POLL_S)

    @property
    def _ends(self) -> list[str]:
        return [_end_of(rank) for rank in range(1, self._world_size)]


def published(store: Store, secret: bytes, rank: int, host: str) -> Generator[tuple[bytes, Store]]:
    """The contents that rank 0 publishes until its end, for another rank, each with the part of the store for it.

    Args:
        store: The store that all ranks have.
        secret: The secret of all ranks.
        rank: Which one this is.
        host: The address of rank 0, as resolved by this rank.

    Raises:
        RuntimeError: when the store is gone.
        PermissionError: when rank 0 has another secret.
    """
    name = secrets.token_hex(NAME_BYTES)
    store.set(f"here/{rank}", signed(secret, f"{name} {host}".encode()))
    store.set_timeout(IDLE)
    own = part_of(store, verified(secret, store.get(f"met/{name}")).decode())
    own.set(f"met/{rank}", b"")
    for number in itertools.count(1):
        store.set_timeout(IDLE)
        if (content := own.get(_key(number))) == END:
            own.set(_end_of(rank), b"")
            return
        yield content, part_of(own, _key(number))


@contextmanager
def lead_torchrun(torchrun: Torchrun) -> Generator[None]:
    """Executes a run as rank 0. If it has no error, the other ranks end with status 0 when this process ends."""
    lead = _leader_of(torchrun)
    lead.ended_well = False
    yield
    lead.ended_well = True


def follow_torchrun(torchrun: Torchrun) -> None:
    """Follow rank 0 until its process ends.

    Args:
        torchrun: For a rank other than 0.

    Raises:
        LaunchError: when torchrun's store cannot be reached, or ends before the run.
        PermissionError: when rank 0 has another secret.
    """
    # Ctrl-C is for rank 0, whose end ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    who = f"rank {torchrun.rank} of {torchrun.world_size} on {socket.gethostname()}"
    store, secret = _connected(torchrun, who), given_secret()
    try:
        for content, part in published(store, secret, torchrun.rank, socket.gethostbyname(torchrun.host)):
            join = pickle.loads(verified(secret, content))
            try:
                follow(torchrun.rank, replace(join, secret=secret), part)
            except RankFault as fault:
                print(f"{who}: {fault}", file=sys.stderr, flush=True)
    except RuntimeError as error:
        raise LaunchError(
            f"{who}: got no answer of torchrun's store at {torchrun.host}:{torchrun.port}, so the run has stopped; "
            "need rank 0 to run; read its output"
        ) from error


def _connected(torchrun: Torchrun, who: str) -> Store:
    """The store of torchrun's processes."""
    try:
        return torchrun_store(CONNECT)
    except RuntimeError as error:
        raise LaunchError(
            f"{who}: got no connection to torchrun's store at {torchrun.host}:{torchrun.port} within "
            f"{CONNECT.total_seconds():g} s; need that port of {torchrun.host} open to this machine: its kernel chose "
            "it, so open all of `sysctl net.ipv4.ip_local_port_range` there"
        ) from error


@functools.cache
def _leader_of(torchrun: Torchrun) -> StoreLeader:
    """The leader of this process, which is rank 0."""
    lead, process = StoreLeader(_connected(torchrun, "rank 0"), given_secret(), torchrun.world_size), os.getpid()
    atexit.register(lambda: lead.end() if os.getpid() == process else None)
    return lead


def _key(number: int) -> str:
    return f"join/{number}"


def _end_of(rank: int) -> str:
    return f"end/{rank}"
