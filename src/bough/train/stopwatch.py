"""Measures the time of each stage of a step."""

import time
from collections.abc import Generator
from contextlib import contextmanager

from bough.engine.engine import Busy, Passing


class Stopwatch:
    """Sums the wall time of named stages. Overlapping stages each count in full."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.passes: dict[str, int] = {}
        self._sequences = 0
        self._begin = time.perf_counter()

    @contextmanager
    def __call__(self, stage: str, **parts: object) -> Generator[None]:
        """Time a `with` block.

        Args:
            stage: Its name.
            parts: Parallel workers of the stage, by name. Their working times are recorded, and as "idle" the wall time
                minus that of the busiest one; parts that are not `Busy` are ignored.
        """
        counting = {name: part for name, part in parts.items() if isinstance(part, Busy)}
        before = {name: part.busy_s for name, part in counting.items()}
        passing = {
            name: (part, part.passes, part.sequences) for name, part in parts.items() if isinstance(part, Passing)
        }
        begin = time.perf_counter()
        try:
            yield
        finally:
            wall_s = time.perf_counter() - begin
            worked = {name: part.busy_s - before[name] for name, part in counting.items()}
            self._add(stage, wall_s)
            for name, seconds in worked.items():
                self._add(f"{stage}/{name}", seconds)
            for name, (part, passes, sequences) in passing.items():
                key = f"{stage}/{name}"
                self.passes[key] = self.passes.get(key, 0) + part.passes - passes
                self._sequences += part.sequences - sequences
            if worked:
                self._add(f"{stage}/idle", wall_s - max(worked.values()))

    def metrics(self, tokens: float | None = None) -> dict[str, float]:
        """`time/<stage>_s` for each stage, `time/<stage>/<part>_s` and `time/<stage>/<part>_passes` for its parts.

        `speed/in_flight` is the mean number of sequences in a pass. With `tokens` also `time/step_s`, the time since
        the stopwatch was created, and `speed/tokens_per_s` over it.
        """
        times = {f"time/{stage}_s": seconds for stage, seconds in self.seconds.items()}
        times |= {f"time/{part}_passes": float(count) for part, count in self.passes.items()}
        if passes := sum(self.passes.values()):
            times["speed/in_flight"] = self._sequences / passes
        if tokens is not None:
            times["time/step_s"] = time.perf_counter() - self._begin
            times["speed/tokens_per_s"] = tokens / max(times["time/step_s"], 1e-9)
        return times

    def _add(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
