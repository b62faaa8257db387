"""How ranks find each other: a store of PyTorch with their addresses, and the interface at which gloo listens."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

import torch.distributed

from bough.launch import interface_to, listener

dist: Any = torch.distributed

INTERFACE = "GLOO_SOCKET_IFNAME"
"""The environment variable with the interface at which gloo listens."""


@runtime_checkable
class Store(Protocol):
    """A store of `torch.distributed`, as far as Bough uses it. All processes that have it see the same values."""

    def get(self, key: str) -> bytes:
        """The value of a key; waits for it.

        Raises:
            RuntimeError: when there is none in time, or the process that has the values has ended.
        """
        ...

    def set(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        ...

    def check(self, keys: list[str]) -> bool:
        """Whether all keys have values."""
        ...

    def add(self, key: str, amount: int) -> int:
        """Add to a number, 0 at first; returns the sum."""
        ...

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the longest time of an operation."""
        ...


def served_store(host: str, limit: timedelta) -> tuple[Store, int]:
    """A new store in this process, and its port.

    Args:
        host: The address of this process at which it listens.
        limit: Longest time of an operation.

    Raises:
        LaunchError: as `listener`.
    """
    listening = listener(host)
    port = listening.getsockname()[1]
    store: Store = dist.TCPStore(
        host, port, is_master=True, wait_for_workers=False, master_listen_fd=listening.detach(), timeout=limit
    )
    return store, port


def connected_store(host: str, port: int, limit: timedelta) -> Store:
    """The store in another process.

    Args:
        host: The address of the other process.
        port: Its port.
        limit: Longest time of an operation.
    """
    return dist.TCPStore(host, port, is_master=False, timeout=limit)


def torchrun_store(limit: timedelta) -> Store:
    """The store of the processes that torchrun started.

    Args:
        limit: Longest time of an operation.
    """
    store, _, _ = next(dist.rendezvous("env://", timeout=limit))
    return store


def part_of(store: Store, name: str) -> Store:
    """A store whose keys are apart from others' in the same store."""
    return dist.PrefixStore(name, store)


@contextmanager
def gloo_reaches(host: str) -> Generator[None]:
    """Within, gloo listens at the interface that reaches a host, unless the user has set one.

    By default gloo takes the address of the machine's name, which often is one that other machines cannot reach.
    """
    interface = None if INTERFACE in os.environ else interface_to(host)
    if interface is None:
        yield
        return
    os.environ[INTERFACE] = interface
    try:
        yield
    finally:
        del os.environ[INTERFACE]
