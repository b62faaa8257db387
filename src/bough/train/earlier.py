"""Earlier versions of the policy as models of roles and seats."""

from collections.abc import Mapping

import torch
from torch import Tensor

from bough.policy.policy import Policy
from bough.train.checked_engine import CheckedEngine

VERSION = "policy_version"
"""The key of the version among the weights in a checkpoint."""


class EarlierWeights:
    """The weights of an earlier version, in an engine of their own.

    Attributes:
        every: Steps between two versions.
    """

    def __init__(self, every: int, engine: CheckedEngine, policy: Policy) -> None:
        self.every = every
        self._engine, self._policy = engine, policy
        self._weights, self._version = _copy(policy), 0
        self._restored = False

    async def begin_step(self, number: int, version: int) -> None:
        """Take the policy's weights when a new version is due, and check that the engine has them.

        Args:
            number: Steps of reinforcement done.
            version: The policy's number of updates.
        """
        if number % self.every == 0:
            self._weights, self._version, self._restored = _copy(self._policy), version, False
            await self._engine.load(self._policy, version)

    async def load_restored(self) -> None:
        """Give the engine the version of `load_state`, if it lacks it, and check that it arrived."""
        if self._restored:
            await self._engine.load(self._policy, self._version, weights=self._weights)
            self._restored = False

    def state(self) -> Mapping[str, Tensor]:
        """The weights and their version."""
        return {**self._weights, VERSION: torch.tensor(self._version)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the result of `state`; `load_restored` then gives it to the engine."""
        self._weights = {name: weight for name, weight in state.items() if name != VERSION}
        self._version = int(state[VERSION])
        self._restored = True


def _copy(policy: Policy) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in policy.state().items()}
