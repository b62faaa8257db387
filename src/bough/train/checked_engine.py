"""An engine that is checked after every load of weights."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial

from torch import Tensor

from bough.engine.gated import GatedEngine
from bough.policy.policy import Policy
from bough.rollout import Deadlines
from bough.train.canary import Canary
from bough.train.in_thread import in_thread


class CheckedEngine:
    """Loads weights of a policy's model into an engine, and compares log-probabilities after each load."""

    def __init__(self, engine: GatedEngine, canary: Canary, deadlines: Deadlines, *, deadline_s: float) -> None:
        """Load into `engine`, whose replies have `deadline_s` seconds each."""
        self._engine, self._canary, self._deadlines, self._deadline_s = engine, canary, deadlines, deadline_s

    async def load(
        self, policy: Policy, version: int, *, weights: Mapping[str, Tensor] | None = None, moved: bool = True
    ) -> float:
        """Load weights and check that they arrived; returns the canary's gap, nats.

        The event loop goes on meanwhile where the engine allows it; the policy has its own weights then.

        Args:
            policy: The model.
            version: The number of updates of the weights.
            weights: `Policy.state` of the weights to load; None for the policy's own.
            moved: Whether the weights may have changed since the last load.

        Raises:
            NoLearningSignal: when engine and learner disagree.
        """
        gated, inner, deadline_s = self._engine, self._engine.engine, self._deadline_s
        async with gated.loading():
            await self._canary.scores(inner, self._deadlines, deadline_s=deadline_s)
            threads = weights is None and gated.loads_in_thread
            if threads:
                # Sharded weights are gathered here: collective operations stay in one thread.
                load = partial(gated.load_weights, gated.weights_of(policy), version)
                await in_thread(load, self._deadlines, owner=f"update {version}", thing="the engine's new weights")
            with _with_weights(policy, weights):
                if not threads:
                    gated.load_policy(policy, version)
                true = self._canary.learner(policy)
            return await self._canary.check(inner, true, self._deadlines, moved=moved, deadline_s=deadline_s)


@contextmanager
def _with_weights(policy: Policy, weights: Mapping[str, Tensor] | None) -> Generator[None]:
    """A policy has other weights inside; without an `await` in it, no other task sees them."""
    own = None if weights is None else {name: weight.clone() for name, weight in policy.state().items()}
    if weights is not None:
        policy.load_state(weights)
    try:
        yield
    finally:
        if own is not None:
            policy.load_state(own)
