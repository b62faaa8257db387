"""A least-recently-used cache of texts and their tokens, limited in bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from sys import getsizeof
from typing import Generic, TypeVar

ENTRY_BYTES, TOKEN_BYTES = 200, 28
"""Memory of an entry without its texts, and of an integer."""

Kept = TypeVar("Kept", str, tuple[int, ...])


class TextCache(Generic[Kept]):
    """A function of hashable arguments that returns a text, or tokens; the most recently used results are kept.

    Unlike `functools.lru_cache` it counts bytes: a few long conversations are as large as thousands of short ones.

    Examples:
        >>> upper = TextCache(str.upper, most_bytes=1000)
        >>> upper("a"), upper("a")
        ('A', 'A')

    Attributes:
        kept_bytes: Memory of the results that are kept, about.
    """

    def __init__(self, function: Callable[..., Kept], *, most_bytes: int) -> None:
        self._function, self._most_bytes = function, most_bytes
        self._kept: OrderedDict[tuple[Hashable, ...], Kept] = OrderedDict()
        self.kept_bytes = 0

    def __call__(self, *key: Hashable) -> Kept:
        """The result for the arguments."""
        result = self._kept.get(key)
        if result is not None:
            with suppress(KeyError):  # a server's threads share a cache
                self._kept.move_to_end(key)
            return result
        result = self._function(*key)
        if key not in self._kept:
            self.kept_bytes += _bytes(key, result)
            self._kept[key] = result
        while self.kept_bytes > self._most_bytes and self._kept:
            self.kept_bytes -= _bytes(*self._kept.popitem(last=False))
        return result


def _bytes(key: tuple[Hashable, ...], result: str | tuple[int, ...]) -> int:
    tokens = 0 if isinstance(result, str) else len(result)
    return ENTRY_BYTES + getsizeof(result) + TOKEN_BYTES * tokens + sum(map(getsizeof, key))
