"""A run's memory: foreseen, kept within a bound, and compared with what it came to."""

from bough.engine import Caching, Engine
from bough.learner.memory_forecast import Extent, foresee, nbytes
from bough.learner.memory_meter import Gauge
from bough.learner.optimizer import Optimizer
from bough.learner.process_memory import GIB
from bough.policy.policy import Policy


class MemoryBudget:
    """How large the stretches of a run may be.

    Attributes:
        micro_tokens: Most tokens of a stretch.
        line: What a person should hear of it.
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
        """Measure the policy, which is left without gradients.

        Args:
            gib: The bound.
            settings: How updates are made.
            policy: As it is trained.
            engine: Its cache counts, and its copy of the policy, where it has them in this process.
            entropy: Whether entropies are learned from.
            reference: Whether there is going to be a reference policy.

        Raises:
            ConfigError: when the bound is too low for any update.
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
        self._memory = foresee(
            policy,
            copies=copies,
            cache_tokens=engine.cache_tokens if isinstance(engine, Caching) else 0,
            entropy=entropy,
            cpu_workers=settings.cpu_workers,
        )
        # What foreseeing has loaded is the program's.
        self._gauge = Gauge(policy.device, there)
        self.micro_tokens = self._memory.fit(gib)
        most_gib = self._memory.most(self.micro_tokens) / GIB
        self.line = f"memory: at most {most_gib:.2f} of {gib:g} GiB, with micro_tokens={self.micro_tokens}"

    def note(self, extent: Extent) -> dict[str, float]:
        """Metrics: what is foreseen for such pieces and the engine's cache as it is, and the most that was taken."""
        cached = self._engine.cached_tokens if isinstance(self._engine, Caching) else 0
        foreseen = self._memory.bytes(extent, cached)
        peak = self._gauge.peak()
        found = {} if peak is None else {"memory/peak_gib": peak / GIB}
        return {"memory/predicted_gib": foreseen / GIB, **found}
