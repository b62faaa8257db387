"""The time in which at least one call runs."""

import time
from dataclasses import dataclass


@dataclass(slots=True)
class BusyTime:
    """Measures the seconds in which at least one of several overlapping blocks runs: `with busy: ...`.

    Blocks of several threads begin and end under a lock of theirs.

    Attributes:
        seconds: The total, up to the last end of a block.
    """

    seconds: float = 0.0
    _calls: int = 0
    _counted_s: float = 0.0

    def __enter__(self) -> None:
        if not self._calls:
            self._counted_s = time.perf_counter()
        self._calls += 1

    def __exit__(self, *error: object) -> None:
        now_s = time.perf_counter()
        self.seconds += now_s - self._counted_s
        self._counted_s = now_s
        self._calls -= 1
