"""The results of actions that were played before: a page does the same again."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Memory(Generic[T]):
    """A bounded store of results; the one that was not used for the longest time is dropped first."""

    def __init__(self) -> None:
        """An empty store."""
        self._found: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, name: Hashable, most: int, make: Callable[[], T]) -> tuple[T, bool]:
        """Returns the result of a name, made where it is missing, and whether it was stored.

        Args:
            name: Of the result.
            most: Maximum number of results; 0 stores nothing.
            make: Makes a result.
        """
        with self._lock:
            if most and name in self._found:
                self._found.move_to_end(name)
                return self._found[name], True
            made = make()
            if most:
                self._found[name] = made
                while len(self._found) > most:
                    self._found.popitem(last=False)
            return made, False

    def clear(self) -> None:
        """Drops all results."""
        with self._lock:
            self._found.clear()
