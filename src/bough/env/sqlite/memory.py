"""The memory that SQLite uses in this process."""

import ctypes
import importlib
import resource
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

STATM = Path("/proc/self/statm")
"""Begins with the size of this process in pages; only Linux has it."""


@lru_cache(maxsize=1)
def memory_meter() -> Callable[[], int]:
    """A function that returns the bytes that SQLite has allocated in this process, for all connections.

    It calls `sqlite3_memory_used` of the library that Python's module uses. Where Python hides that function, the
    returned number is always 0.
    """
    try:
        library = ctypes.CDLL(importlib.import_module("_sqlite3").__file__ or "")
        used = library.sqlite3_memory_used
    except (OSError, AttributeError):
        return lambda: 0
    used.restype = ctypes.c_int64
    return used


@lru_cache(maxsize=1)
def limit_memory(added_bytes: int) -> None:
    """From now on an allocation fails that would add more than that many bytes to the address space of this process.

    It holds within one instruction of SQLite, and where `memory_meter` is always 0. The address space is read once, as
    that takes longer than a query: until `lift_limit`, or another limit.
    """
    if STATM.exists():
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = int(STATM.read_text().split()[0]) * resource.getpagesize() + added_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def lift_limit() -> None:
    """Ends the limit of `limit_memory`."""
    limit_memory.cache_clear()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
