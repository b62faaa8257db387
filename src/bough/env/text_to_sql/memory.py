"""The memory that SQLite uses in this process."""

import ctypes
import importlib
from collections.abc import Callable
from functools import lru_cache


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
