"""How long each stage of a step takes."""

import time
from collections.abc import Generator
from contextlib import contextmanager


class Stopwatch:
    """Adds up the wall time of named stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Generator[None, None, None]:
        """Time what is done inside."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - begin

    def metrics(self, tokens: float | None = None) -> dict[str, float]:
        """`time/<stage>_s` for each stage, and `speed/tokens_per_s` over all of them when `tokens` are given."""
        times = {f"time/{stage}_s": seconds for stage, seconds in self.seconds.items()}
        if tokens is not None:
            times["speed/tokens_per_s"] = tokens / max(sum(self.seconds.values()), 1e-9)
        return times
