"""Ranks that torchrun started: they find each other by its store.

    rank 0    the run      sets join/1, and at its end join/2 = "end"
    rank 1    waits for join/1, follows, waits for join/2, ends

A process that makes several runs, one after the other, sets one key for each.
"""

import atexit
import itertools
import pickle
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from bough.launch import Torchrun, given_secret, signed, verified
from bough.learner.commands import JoinGroup
from bough.learner.follow import follow
from bough.learner.ranks import IDLE, RankFault
from bough.learner.rendezvous import Store, part_of, torchrun_store

END = b"end"

LIMIT = timedelta(minutes=10)
"""Longest wait for the store."""

HOST, JOINS = "host", "joins"
"""Keys of the store: the address of rank 0, and the number of times that ranks were asked to join."""


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
        self._store = _store(torchrun)

    @property
    def host(self) -> str:
        """See `RankProcesses.host`.

        Raises:
            RankFault: when the last rank does not come.
        """
        try:
            return self._store.get(HOST).decode()
        except RuntimeError as error:
            last = self.world_size - 1
            raise RankFault(f"rank {last} of {self.world_size} did not come within {LIMIT}: {error}") from error

    def start(self, limit_s: float) -> None:
        """Do nothing: torchrun has started them."""

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
        return part_of(self._store, _publish(self._store, signed(self.secret, pickle.dumps(join))))

    def ended(self) -> Sequence[int]:
        """None: torchrun watches them."""
        return ()

    def wait(self) -> None:
        """Do nothing: they wait for the next run."""

    def end(self) -> None:
        """Do nothing: torchrun ends them."""

    def close(self) -> None:
        """Do nothing: their resources are torchrun's."""


def lead_torchrun(torchrun: Torchrun) -> None:
    """Have the other ranks end when this process, rank 0, ends."""
    store = _store(torchrun)
    atexit.register(_end, store)


def follow_torchrun(torchrun: Torchrun) -> None:
    """Follow rank 0 until its process ends.

    Args:
        torchrun: For a rank other than 0.
    """
    # Ctrl-C is for rank 0, whose end ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store, secret = _store(torchrun), given_secret()
    if torchrun.rank == torchrun.world_size - 1:
        # On its own machine the name of rank 0 may stand for an address that others cannot reach. The last rank is on
        # another machine, if there are several.
        store.set(HOST, socket.gethostbyname(torchrun.host).encode())
    for number in itertools.count(1):
        key = _key(number)
        store.set_timeout(IDLE)
        try:
            content = store.get(key)
        except RuntimeError:  # rank 0 had the store, and has ended
            return
        if content == END:
            return
        with suppress(RankFault):
            join = pickle.loads(verified(secret, content))
            follow(torchrun.rank, replace(join, secret=secret), part_of(store, key))


def _store(torchrun: Torchrun) -> Store:
    """The store of torchrun's processes, in their present attempt."""
    return part_of(torchrun_store(LIMIT), f"bough/{torchrun.attempt}")


def _publish(store: Store, content: bytes) -> str:
    key = _key(store.add(JOINS, 1))
    store.set(key, content)
    return key


def _key(number: int) -> str:
    return f"join/{number}"


def _end(store: Store) -> None:
    with suppress(RuntimeError):
        _publish(store, END)
