"""How much of the time that a machine's processors had work its host gave to other machines.

What is measured then is the host's other work. No ratio of two sides in turn is safe from it: it comes in bursts.
"""

from pathlib import Path

BOUND = 0.05
"""Largest share that changes what a round takes by little."""

CLOCK = Path("/proc/stat")
"""Where Linux tells it: user, nice, system, idle, waiting, interrupts (two kinds), stolen; in ticks, of all cores."""


class Stolen:
    """A stretch of time, from when this is made.

    Args:
        clock: A file like `CLOCK`; where there is none, as on other systems, nothing counts as stolen.
    """

    def __init__(self, clock: Path = CLOCK) -> None:
        self._clock = clock
        self._before = self._ticks()

    def share(self) -> float:
        """Stolen time over that and the time in which something ran, so far."""
        stolen, ran = (now - before for now, before in zip(self._ticks(), self._before, strict=True))
        return stolen / max(stolen + ran, 1)

    def _ticks(self) -> tuple[int, int]:
        if not self._clock.exists():
            return 0, 0
        user, nice, system, _, _, hard, soft, stolen = map(int, self._clock.read_text().split()[1:9])
        return stolen, user + nice + system + hard + soft
