"""A least-recently-used cache of texts, limited in bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from sys import getsizeof

ENTRY_BYTES = 200
"""Memory of an entry without its texts."""


class TextCache:
    """A function of hashable arguments that returns a text; the most recently used texts are kept.

    Unlike `functools.lru_cache` it counts bytes: a few long conversations are as large as thousands of short ones.

    Example:
        >>> upper = TextCache(str.upper, most_bytes=1000)
        >>> upper("a"), upper("a")
        ('A', 'A')

    Attributes:
        kept_bytes: Memory of the texts that are kept, about.
    """

    def __init__(self, function: Callable[..., str], *, most_bytes: int) -> None:
        self._function, self._most_bytes = function, most_bytes
        self._kept: OrderedDict[tuple[Hashable, ...], str] = OrderedDict()
        self.kept_bytes = 0

    def __call__(self, *key: Hashable) -> str:
        """The text of the arguments."""
        text = self._kept.pop(key, None)
        if text is None:
            text = self._function(*key)
            self.kept_bytes += _bytes(key, text)
        # The last is the one used last.
        self._kept[key] = text
        while self.kept_bytes > self._most_bytes and self._kept:
            self.kept_bytes -= _bytes(*self._kept.popitem(last=False))
        return text


def _bytes(key: tuple[Hashable, ...], text: str) -> int:
    return ENTRY_BYTES + getsizeof(text) + sum(map(getsizeof, key))
