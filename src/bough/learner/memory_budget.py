"""The memory budget of a run: forecasts memory, sets the chunk size, and logs the measured peak."""

from dataclasses import replace

from bough.engine import Caching, Engine
from bough.learner.memory_forecast import ChunkShape, forecast_memory, nbytes
from bough.learner.memory_meter import MemoryMeter
from bough.learner.optimizer import Optimizer
from bough.policy.policy import Policy
from bough.units import GIB


class MemoryBudget:
    """Sets the chunk size of a run from a memory limit.

    Attributes:
        micro_tokens: Maximum tokens of a chunk.
        line: Progress line with the forecast.
    """

    def __init__(
        self,
        gib: float,
        settings: Optimizer,
        policy: Policy,
        engine: Engine,
        *,
        entropy: bool,
        reference: bool,
    ) -> None:
        """Forecast the policy's memory; leaves no gradients behind.

        Args:
            gib: The memory limit.
            settings: The optimizer settings.
            policy: The trained policy.
            engine: Its cache counts, and its copy of the policy if it is in this process. A cache without a limit in
                the settings gets one.
            entropy: Whether the loss needs entropies.
            reference: Whether the run has a reference policy.

        Raises:
            ConfigError: when the limit is too low for any update.
        """
        weights, copies = nbytes(policy.weights().values()), dict[str, int]()
        self._engine = engine
        if isinstance(engine, Caching):
            copies["the engine's copy"] = weights
        there = weights + sum(copies.values())
        if reference:
            copies["a reference"] = weights
        if settings.momentum == "harpg":
            copies["the last move, and the weights meanwhile"] = 2 * nbytes(policy.parameters().values())
        self._memory = forecast_memory(
            policy,
            copies=copies,
            cache_tokens=engine.cache_tokens if isinstance(engine, Caching) else 0,
            entropy=entropy,
            cpu_workers=settings.cpu_workers or 1,
        )
        if isinstance(engine, Caching):
            engine.bound_cache(self._memory.fitted_cache(gib))
            self._memory = replace(self._memory, cache_tokens=engine.cache_tokens)
        # Libraries loaded by the forecast count as the program's memory.
        self._gauge = MemoryMeter(policy.device, there)
        self.micro_tokens = self._memory.fit(gib)
        most_gib = self._memory.most(self.micro_tokens) / GIB
        self.line = f"memory: at most {most_gib:.2f} of {gib:g} GiB, with micro_tokens={self.micro_tokens}"

    def note(self, chunk_shape: ChunkShape) -> dict[str, float]:
        """Metrics: the forecast for such chunks and the engine's present cache, and the measured peak."""
        cached = self._engine.cached_tokens if isinstance(self._engine, Caching) else 0
        foreseen = self._memory.bytes(chunk_shape, cached)
        peak = self._gauge.peak()
        found = {} if peak is None else {"memory/peak_gib": peak / GIB}
        return {"memory/predicted_gib": foreseen / GIB, **found}
